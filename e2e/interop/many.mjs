// Runs a script that checks files once for each of many cases, in one process: each
// a folder's files and the words of the command line.
//
//     node many.mjs SCRIPT FOLDER < [{"files": {"name": "text"}, "args": ["…"]}]
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const [script, folder] = process.argv.slice(2);
const ran = [];
for (const [i, {files, args}] of JSON.parse(readFileSync(0, "utf8")).entries()) {
	for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
	const said = [], {log, error} = console;
	console.log = console.error = (...words) => said.push(words.join(" "));
	process.chdir(folder);
	process.argv = [process.argv[0], script, ...args];
	process.exitCode = 0;
	try {
		await import(`${pathToFileURL(script)}?${i}`); // a module runs once, under one name
	} catch (e) { // as a process it would end with it
		said.push(e.message);
		process.exitCode = 1;
	}
	Object.assign(console, {log, error});
	ran.push({exit: process.exitCode, said: said.join("\n")});
}
process.exitCode = 0;
console.log(JSON.stringify(ran));
