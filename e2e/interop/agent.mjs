// A personal agent in JavaScript, made of code of others alone: oauth4webapi asks,
// jose signs the pa-jwt and verifies what comes back.
//
//     node agent.mjs ISSUER SCOPE... < agent.json
//
// The first line of standard input is the agent with its private keys. The script
// writes the link for the person as a line of JSON, and polls until it is answered.
import {createInterface} from "node:readline/promises";
import * as oauth from "oauth4webapi";
import {SignJWT, createRemoteJWKSet, importJWK, jwtVerify} from "jose";

const [issuer, ...scopes] = process.argv.slice(2);
const lines = createInterface({input: process.stdin})[Symbol.asyncIterator]();
const agent = JSON.parse((await lines.next()).value);
const key = agent.jwks.keys.find((k) => k.kty === "EC" && k.use === "sig" && k.kid);
const signing = await importJWK(key, "ES256");

// The one client authentication there is: a bearer of the agent's own making.
const authenticate = async () => {
	const jwt = await new SignJWT({}).setProtectedHeader({alg: "ES256", typ: "JWT", kid: key.kid})
		.setIssuer(agent.issuer).setSubject("interop-javascript").setAudience(agent.audience)
		.setIssuedAt().setExpirationTime("2m").sign(signing);
	return (_as, client, body, headers) => {
		body.set("client_id", client.client_id);
		headers.set("authorization", "Bearer " + jwt);
	};
};
const client = {client_id: agent.issuer};
const local = {[oauth.allowInsecureRequests]: true}; // this machine, without TLS

const server = await oauth.processDiscoveryResponse(
	new URL(issuer), await oauth.discoveryRequest(new URL(issuer), {algorithm: "oauth2", ...local}));

const started = await oauth.processDeviceAuthorizationResponse(server, client,
	await oauth.deviceAuthorizationRequest(server, client, await authenticate(), {scope: scopes.join(" ")}, local));
console.log(JSON.stringify({link: started.verification_uri_complete, user_code: started.user_code}));

const refused = async (what, call) => {
	try {
		await call();
	} catch (e) {
		return e.error;
	}
	throw new Error(what + " was not refused");
};
const poll = async () => oauth.processDeviceCodeResponse(server, client,
	await oauth.deviceCodeGrantRequest(server, client, await authenticate(), started.device_code, local));

const errors = [await refused("a pending code", poll)];
await lines.next(); // the person has answered
const tokens = await poll();
errors.push(await refused("a redeemed code", poll));

const keys = createRemoteJWKSet(new URL(server.jwks_uri));
const read = async (token) => (await jwtVerify(token, keys, {
	issuer: server.issuer, typ: "at+jwt", requiredClaims: ["sub", "client_id", "scope", "grant_id", "iat", "exp", "jti"],
})).payload;
const first = await read(tokens.access_token);

const refresh = async (token) => oauth.processRefreshTokenResponse(server, client,
	await oauth.refreshTokenGrantRequest(server, client, await authenticate(), token, local));
const next = await refresh(tokens.refresh_token);
const second = await read(next.access_token);

await oauth.processRevocationResponse(
	await oauth.revocationRequest(server, client, await authenticate(), next.refresh_token, local));
errors.push(await refused("a revoked refresh token", () => refresh(next.refresh_token)));

console.log(JSON.stringify({errors, first, second, token_type: tokens.token_type, scope: next.scope}));
process.exit(0);
