// node fetch.mjs FACE-URI NAME FILE: finds the newest version by RDR metadata and fetches the object.
import { writeFile } from "node:fs/promises";
import { fetch } from "@ndn/segmented-object";
import { retrieveMetadata } from "@ndn/rdr";
import { digestSigning } from "@ndn/packet";
import { connect, report } from "./connect.mjs";

const [uri, name, file] = process.argv.slice(2);
const face = await connect(uri, { register: false });
const metadata = await retrieveMetadata(name, { retx: 3, verifier: digestSigning });
const started = performance.now();
const result = fetch(metadata.name, { verifier: digestSigning, retxLimit: 10 });
const content = await result;
await writeFile(file, content);
report({ name: metadata.name.toString(), bytes: content.length, milliseconds: performance.now() - started });
face.close();
