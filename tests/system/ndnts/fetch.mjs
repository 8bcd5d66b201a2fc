// node fetch.mjs FACE-URI NAME FILE [SIGNER]: finds the newest version by RDR metadata, fetches the object and verifies
// every packet with the certificate of the key stem SIGNER, or by its digest without SIGNER. Reports the error on failure.
import { writeFile } from "node:fs/promises";
import { fetch } from "@ndn/segmented-object";
import { retrieveMetadata } from "@ndn/rdr";
import { connect, report } from "./connect.mjs";
import { loadVerifier } from "./security.mjs";

const [uri, name, file, signer = "digest"] = process.argv.slice(2);
await connect(uri, { register: false });
const verifier = await loadVerifier(signer);
try {
  const metadata = await retrieveMetadata(name, { retx: 3, verifier });
  const content = await fetch(metadata.name, { verifier, retxLimit: 10 });
  await writeFile(file, content);
  report({ name: metadata.name.toString(), bytes: content.length });
} catch (error) {
  report({ error: String(error) });
}
// End at once: the fetcher's timers would keep the program running for another second.
process.exit();
