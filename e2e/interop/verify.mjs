// What a Brand's server in another language does with what we publish and sign:
// it reads metadata and keys, verifies a token, receipts and a status list with
// jose, and refuses what was tampered with. None of our code.
//
//     node verify.mjs ISSUER INTERFACE < {"token": "…", "receipts": ["…"]}
import {readFileSync} from "node:fs";
import {compactVerify, createRemoteJWKSet, decodeJwt, importJWK, jwtVerify} from "jose";

const [issuer, audience] = process.argv.slice(2);
const {token, receipts} = JSON.parse(readFileSync(0, "utf8"));
const fetched = async (url) => {
	const answer = await fetch(url);
	if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
	return answer;
};
const metadata = await (await fetched(issuer + "/.well-known/oauth-authorization-server")).json();
if (metadata.issuer !== issuer) throw new Error("metadata of " + metadata.issuer);
const set = await (await fetched(metadata.jwks_uri)).json();
for (const jwk of set.keys) {
	const key = await importJWK(jwk, jwk.alg);
	if (key.type !== "public") throw new Error("a published key is " + key.type);
}
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));
const rules = {issuer, audience, typ: "at+jwt", algorithms: ["ES256", "RS256"], requiredClaims: ["client_id", "grant_id", "scope", "jti"]};
const {payload} = await jwtVerify(token, keys, rules);

const text = await (await fetched(payload.status.status_list.uri)).text();
const list = await jwtVerify(text, keys, {subject: payload.status.status_list.uri, typ: "statuslist+jwt"});

const signed = [];
for (const receipt of receipts) {
	const {payload: bytes, protectedHeader} = await compactVerify(receipt, keys);
	if (protectedHeader.typ !== "pact-receipt+jws") throw new Error("a receipt's typ is " + protectedHeader.typ);
	signed.push(JSON.parse(new TextDecoder().decode(bytes)));
}

// Negative controls: a verifier that lets everything through proves nothing.
const base64url = (v) => Buffer.from(JSON.stringify(v)).toString("base64url");
const [header, body, signature] = token.split(".");
const flipped = (s) => (s[10] === "A" ? s.slice(0, 10) + "B" : s.slice(0, 10) + "A") + s.slice(11);
const forgeries = {
	"other claims": [[header, base64url({...payload, scope: "everything"}), signature].join("."), rules],
	"another signature": [[header, body, flipped(signature)].join("."), rules],
	"no algorithm": [[base64url({alg: "none", typ: "at+jwt"}), body, ""].join("."), rules],
	"another audience": [token, {...rules, audience: audience + "/"}],
	"another issuer": [token, {...rules, issuer: audience}],
	"another type": [token, {...rules, typ: "pact-receipt+jws"}],
	"too late": [token, {...rules, currentDate: new Date(payload.exp * 1000)}],
	"a status list": [text, rules],
};
for (const [i, receipt] of receipts.entries()) forgeries["receipt " + i] = [receipt, rules];
const refused = {};
for (const [what, [forged, by]] of Object.entries(forgeries)) {
	try {
		await jwtVerify(forged, keys, by);
	} catch (e) {
		refused[what] = e.code;
		continue;
	}
	throw new Error("jose took " + what);
}
for (const [i, receipt] of receipts.entries()) {
	const [h, b, s] = receipt.split(".");
	const forged = base64url({...decodeJwt(receipt), user: "somebody"});
	try {
		await compactVerify([h, forged, s].join("."), keys);
	} catch (e) {
		refused["tampered receipt " + i] = e.code;
		continue;
	}
	throw new Error("jose took a tampered receipt of " + b.length);
}
console.log(JSON.stringify({payload, keys: set.keys.length, list: list.payload, receipts: signed, refused}));
