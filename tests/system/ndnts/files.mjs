// node files.mjs FACE-URI PREFIX DIRECTORY-PATH FILE-PATH OUTPUT: lists a directory of a file server, and fetches a whole file and a part of it.
import { writeFile } from "node:fs/promises";
import { Client } from "@ndn/fileserver";
import { Name } from "@ndn/packet";
import { connect, report } from "./connect.mjs";

const [uri, prefix, directory, file, output] = process.argv.slice(2);
await connect(uri, { register: false });
const client = new Client(new Name(prefix), { retx: 3, retxLimit: 10 });

const folder = await client.stat(directory);
const entries = [];
for await (const entry of client.readdir(folder)) {
  entries.push(entry);
}
report({ isDir: folder.isDir, isFile: folder.isFile, entries });

const found = await client.stat(directory, { name: file, isDir: false });
await writeFile(output, await client.readFile(found));
const part = new Uint8Array(5000);
await client.readFileInto(found, part, 0, part.length, 12345);
report({
  isFile: found.isFile, size: found.size, segmentSize: found.segmentSize, lastSeg: found.lastSeg,
  mtime: found.mtime.getTime(), part: Buffer.from(part).toString("hex"),
});

try {
  await client.stat(`${directory}/nothing`);
} catch (error) {
  report({ error: String(error) });
}
// End at once: the fetcher's timers would keep the program running for another second.
process.exit();
