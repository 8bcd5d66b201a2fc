// node produce.mjs FACE-URI NAME ZONE SIGNER [ANNOUNCER]: answers Interests under NAME and registers the prefix with commands
// signed by SIGNER. With ANNOUNCER it uses rib/announce and a prefix announcement signed by ANNOUNCER. Both are key stems or
// `digest`. ZONE is localhost, localhop, or default, which is NDNts' own choice for this face.
import { produce } from "@ndn/endpoint";
import { enableNfdPrefixReg, getPrefix, PrefixAnn } from "@ndn/nfdmgmt";
import { Data, digestSigning, Name } from "@ndn/packet";
import { connect, report } from "./connect.mjs";
import { load } from "./security.mjs";

const [uri, nameText, zone, signerStem, announcerStem] = process.argv.slice(2);
const face = await connect(uri, { register: false });
const name = new Name(nameText);
const options = { signer: await load(signerStem), PrefixAnn, retry: { retries: 0 } };
if (zone !== "default") {
  options.prefix = getPrefix(zone === "localhost");
}
enableNfdPrefixReg(face, options);
const announcement = announcerStem ?
  await PrefixAnn.build({ announced: name, expirationPeriod: 3_600_000, signer: await load(announcerStem) }) :
  name;
produce(name, async (interest) => {
  const data = new Data(interest.name, Data.FreshnessPeriod(1), new TextEncoder().encode("here"));
  await digestSigning.sign(data);
  return data;
}, { announcement });
report({ producing: name.toString() });
