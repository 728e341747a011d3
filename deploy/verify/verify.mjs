// What a Brand's authority signed, checked from saved files: without a network, and without
// any code of Countersign. Node 20 runs it, with "npm install jose" beside it.
//   node verify.mjs token   FILE --jwks F --issuer URL --audience URL --agent ISSUER
//   node verify.mjs receipt FILE --jwks F --audience URL [--entry F --inclusion F --checkpoint F --issuer URL]
//   node verify.mjs task    FILE --jwks F --audience URL --receipts F
//   node verify.mjs log     FILE --jwks F --issuer URL [--checkpoint F --consistency F]
// It exits with 0 where everything holds, and else says why not. README.md says more.
import {createHash} from "node:crypto";
import {readFileSync} from "node:fs";
import {parseArgs} from "node:util";
import {compactVerify, createLocalJWKSet} from "jose";
const must = (holds, why) => { if (!holds) throw new Error(why); };
const same = (what, got, want) => must(got === want, `${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`);
const flags = "jwks issuer audience agent entry inclusion checkpoint receipts consistency at".split(" ");
const {values: o, positionals: [kind, file]} = parseArgs({allowPositionals: true, options: Object.fromEntries(flags.map((f) => [f, {type: "string"}]))});
const now = (o.at ? Date.parse(o.at) : Date.now()) / 1000; // --at TIME judges as of then
const given = (name) => o[name] || must(false, `--${name} is missing`);
const saved = (name) => readFileSync(given(name), "utf8").trim();
const isText = (v) => typeof v === "string" && v !== "", isCount = (v) => Number.isSafeInteger(v) && v >= 0;
const kinds = { // every other member is a text
	exp: (v) => isCount(v) && now < v, iat: (v) => isCount(v) && v <= now + 30, size: isCount, count: isCount, seq: isCount,
	ts: (v) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$/.test(v) && Date.parse(v) / 1000 <= now + 30,
	scopesUsed: (v) => Array.isArray(v) && v.every(isText), actions: (v) => Array.isArray(v) && v.every((a) => isText(a?.tool)),
};
const base64url = (bytes) => bytes.toString("base64url");
const raw = (text) => { // base64url has one way to write a thing; whoever takes others has two names for it
	same("base64url", text, base64url(Buffer.from(String(text), "base64url")));
	return Buffer.from(text, "base64url");
};
const canonical = (v) => Array.isArray(v) ? `[${v.map(canonical)}]` : v === null || typeof v !== "object" ? JSON.stringify(v)
	: `{${Object.keys(v).sort().map((name) => `${JSON.stringify(name)}:${canonical(v[name])}`)}}`; // RFC 8785
function shaped(text, members, others) { // an object with these members, and no others unless they may be
	const c = JSON.parse(text);
	for (const name of members.split(",")) must((kinds[name] ?? isText)(c[name]), `${name}: ${JSON.stringify(c[name])} does not hold`);
	if (!others) same("members", text, canonical(Object.fromEntries(members.split(",").map((name) => [name, c[name]]))));
	return c;
}
async function signed(jws, typ, members, expected, others) { // what a published key signed, with ES256 and nothing else
	jws.split(".").forEach(raw);
	const {payload, protectedHeader} = await compactVerify(jws, createLocalJWKSet(JSON.parse(saved("jwks"))), {algorithms: ["ES256"]});
	same("header", `${Object.keys(protectedHeader).sort()}: ${protectedHeader.typ}`, `alg,kid,typ: ${typ}`); // and no key of its own
	const c = shaped(Buffer.from(payload).toString(), members, others);
	for (const [name, want] of Object.entries(expected)) same(name, c[name], want);
	return c;
}
const bare = (text) => text.startsWith("{") ? JSON.parse(text).jws : text; // {jws, claims}: the claims that it prints are the signed ones
const checkpoint = (text) => signed(bare(text), "countersign-checkpoint+jws", "log,root,size,ts", {log: given("issuer") + "/log"});

// The tree of RFC 6962. The last hash of a proof is the one right below the root.
const sha256 = (...parts) => parts.reduce((h, part) => h.update(part), createHash("sha256")).digest();
const leaf = (text) => sha256("\0", text), node = (left, right) => sha256("\x01", left, right);
const half = (size) => { let k = 1; while (2 * k < size) k *= 2; return k; };
const tree = (leaves, k = half(leaves.length)) => leaves.length === 1 ? leaves[0] : node(tree(leaves.slice(0, k)), tree(leaves.slice(k)));
function climb(from, seq, size, next) { // to the root, from a leaf
	if (size === 1) return from;
	const k = half(size), beside = next();
	return seq < k ? node(climb(from, seq, k, next), beside) : node(beside, climb(from, seq - k, size - k, next));
}
function both(older, newer, next, known) { // the roots of two logs; known: the older one's, where no proof needs to say it
	if (older === newer) return Array(2).fill(known ?? next());
	const k = half(newer), beside = next();
	return older <= k ? both(older, k, next, known).map((root, i) => i === 0 ? root : node(root, beside))
		: both(older - k, newer - k, next).map((root) => node(beside, root));
}
function proved(name, roots, walk) { // the walk takes every hash of the saved proof and leads to the roots
	const hashes = JSON.parse(saved(name)).hashes.map(raw);
	same(name, String(walk(() => hashes.pop() ?? must(false, `${name}: a hash is missing`)).map(base64url)), String(roots));
	same(`${name}: hashes too many`, hashes.length, 0);
}
const judges = {
	token: (jws) => signed(jws, "at+jwt", "sub,scope,grant_id,jti,iat,exp", {iss: given("issuer"), aud: given("audience"), client_id: given("agent")}, true),
	async receipt(jws) {
		const c = await signed(jws, "pact-receipt+jws", "actions,brand,grantId,pa,scopesUsed,ts,user", {brand: given("audience")});
		if (!o.entry && !o.inclusion && !o.checkpoint) return c;
		const log = await checkpoint(saved("checkpoint")), {entry, salt} = JSON.parse(saved("entry")), {seq, receipt, grant, at} = JSON.parse(entry);
		must(isCount(seq) && seq < log.size, `inclusion: entry ${seq} of ${log.size}`);
		proved("inclusion", [log.root], (next) => [climb(leaf(entry), seq, log.size, next)]);
		const parts = ["receipt", raw(salt), jws.slice(0, jws.lastIndexOf("."))].map((part) => Buffer.from(part));
		const seal = base64url(sha256(...parts.flatMap((part) => [Buffer.of(0, part.length >> 16, part.length >> 8, part.length), part])));
		same("entry", canonical([receipt, grant, at]), canonical([seal, c.grantId, c.ts])); // of this receipt, and says of it what it says
		return c;
	},
	async task(jws) {
		const t = await signed(jws, "pact-task-receipt+jws", "brand,contextId,count,grantId,pa,root,ts,user", {brand: given("audience")});
		const all = await Promise.all(saved("receipts").split("\n").map((line) => judges.receipt(bare(line))));
		for (const c of all) for (const name of ["grantId", "user", "pa"]) same(name, c[name], t[name]);
		same("count", all.length, t.count);
		same("receipts, or their order", base64url(tree(all.map((c) => leaf(canonical(c))))), t.root);
		return t;
	},
	async log(jws) {
		const newer = await checkpoint(jws), older = o.checkpoint ? await checkpoint(saved("checkpoint")) : newer;
		must(older.size <= newer.size, `consistency: it had ${older.size} entries and has ${newer.size}`);
		if (older.size === newer.size) same("consistency", newer.root, older.root);
		else if (older.size > 0) proved("consistency", [older.root, newer.root], (next) => both(older.size, newer.size, next, raw(older.root)));
		return newer;
	},
};
const run = async () => (judges[kind] ?? must(false, "token, receipt, task or log?"))(bare(readFileSync(file, "utf8").trim()));
await run().then((says) => console.log("It holds.", JSON.stringify(says)), (e) => { console.error("Refused:", e.message); process.exitCode = 1; });
