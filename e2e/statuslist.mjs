// What a Brand's server in another language does with a token's status: it finds
// the list by the token, fetches it, verifies it with the issuer's published
// keys, and looks the token up. Code of others throughout; none of ours.
//
//     echo TOKEN | node statuslist.mjs ISSUER
import {readFileSync} from "node:fs";
import {getListFromStatusListJWT, getStatusListFromJWT} from "@sd-jwt/jwt-status-list";
import {createRemoteJWKSet, jwtVerify} from "jose";

const issuer = process.argv[2];
const token = readFileSync(0, "utf8").trim();
const metadata = await (await fetch(issuer + "/.well-known/oauth-authorization-server")).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));
await jwtVerify(token, keys, {issuer, typ: "at+jwt"});

const {uri, idx} = getStatusListFromJWT(token);
const {status_lists: all} = await (await fetch(metadata.status_list_aggregation_endpoint)).json();
if (!all.includes(uri)) throw new Error(uri + " is not among the issuer's lists");
const answer = await fetch(uri, {headers: {accept: "application/statuslist+jwt"}});
const type = answer.headers.get("content-type");
if (answer.status !== 200 || type !== "application/statuslist+jwt") throw new Error(`${uri}: ${answer.status} ${type}`);
const text = await answer.text();
const {payload} = await jwtVerify(text, keys, {
	subject: uri, typ: "statuslist+jwt", requiredClaims: ["sub", "iat", "exp", "ttl", "status_list"],
});
const list = getListFromStatusListJWT(text);
console.log(JSON.stringify({
	uri, idx, text, bits: list.getBitsPerStatus(), indexes: list.statusList.length,
	status: list.getStatus(idx), life: payload.exp - payload.iat,
}));
