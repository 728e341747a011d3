// Asks the browser for a passkey and sends it with the form it belongs to. The
// page says what to ask for; the server checks all of it. Nothing else on our
// pages needs script.
"use strict";

for (const form of document.querySelectorAll("form[data-passkey]")) {
	const problem = form.querySelector("[data-cancelled]");

	const ask = async () => {
		const { publicKey } = JSON.parse(form.dataset.options);
		if (form.dataset.passkey === "create") {
			return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
		}
		return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
	};

	const tell = (text) => {
		problem.textContent = text;
		problem.hidden = false;
	};

	form.addEventListener("submit", async (event) => {
		event.preventDefault();
		problem.hidden = true;
		if (!window.PublicKeyCredential || !PublicKeyCredential.parseCreationOptionsFromJSON) {
			tell(problem.dataset.unsupported);
			return;
		}
		try {
			const credential = await ask();
			form.elements.namedItem("credential").value = JSON.stringify(credential.toJSON());
			form.submit();
		} catch (error) {
			tell(error.name === "InvalidStateError" ? problem.dataset.known : problem.dataset.cancelled);
		}
	});
}
