// node serve.mjs FACE-URI NAME FILE [no-register]: publishes the file as a versioned, segmented object with RDR
// metadata. Reports its own port if the face is UDP.
import { readFile } from "node:fs/promises";
import { BufferChunkSource, serve } from "@ndn/segmented-object";
import { serveMetadata } from "@ndn/rdr";
import { Version } from "@ndn/naming-convention2";
import { Name, digestSigning } from "@ndn/packet";
import { connect, report } from "./connect.mjs";

const [uri, nameText, file, register = "register"] = process.argv.slice(2);
const face = await connect(uri, { register: register === "register" });
const name = new Name(nameText);
const versioned = name.append(Version.create(Date.now()));
const source = new BufferChunkSource(await readFile(file), { chunkSize: 7000 });
serve(versioned, source, { signer: digestSigning, freshnessPeriod: 60000, pOpts: { announcement: name } });
serveMetadata({ name: versioned, encodeTo(encoder) { encoder.encode(versioned); } }, {
  prefix: name, freshnessPeriod: 10, signer: digestSigning, pOpts: { announcement: name },
});
report({ serving: versioned.toString(), port: face.localPort });
