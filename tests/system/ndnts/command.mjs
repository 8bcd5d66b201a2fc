// node command.mjs FACE-URI ZONE SIGNER STEP...: sends signed commands one after the other; reports the status code of each
// response, or null without a response. ZONE is localhost or localhop, SIGNER a key's stem or `digest`. A STEP is
//   VERB JSON       signs and sends a command, for example: rib/register {"name":"/a"}
//   announce STEM   rib/announce of the prefix /announced with an announcement signed by STEM
//   unsigned JSON   rib/register without any signature
//   replay INDEX    sends an earlier command again and requires a fresh answer; INDEX 0 is the first signed command
//   sleep MS        waits
// `?` before a step says that no response is expected, which shortens the wait.
import { setTimeout as delay } from "node:timers/promises";
import { consume } from "@ndn/endpoint";
import { ControlCommandOptions, ControlParameters, ControlResponse, getPrefix, PrefixAnn } from "@ndn/nfdmgmt";
import { Interest, Name, SignedInterestPolicy } from "@ndn/packet";
import { Decoder } from "@ndn/tlv";
import { connect, report } from "./connect.mjs";
import { load } from "./security.mjs";

const [uri, zone, signerStem, ...steps] = process.argv.slice(2);
const face = await connect(uri, { register: false });
const prefix = getPrefix(zone === "localhost");
const policy = new SignedInterestPolicy(SignedInterestPolicy.Nonce(), SignedInterestPolicy.Time());
const signer = policy.makeSigner(await load(signerStem));
const sent = [];

function command(verb, json) {
  const { name, ...fields } = JSON.parse(json);
  const parameters = new ControlParameters({ ...fields, name: name && new Name(name) });
  return ControlCommandOptions.formatCommandParamsComp(prefix, verb, parameters);
}

async function announce(stem) {
  const announcement = await PrefixAnn.build({ announced: "/announced", expirationPeriod: 60_000, signer: await load(stem) });
  return ControlCommandOptions.formatCommandAppParams(prefix, "rib/announce", announcement.data);
}

async function express(step, interest, lifetime) {
  let code = null;
  let text;
  try {
    const data = await consume(interest, { modifyInterest: { mustBeFresh: true, lifetime } });
    ({ statusCode: code, statusText: text } = Decoder.decode(data.content, ControlResponse));
  } catch (error) {
    text = String(error);
  }
  report({ step, code, text });
}

for (let at = 0; at < steps.length; at += 2) {
  const [step, argument] = [steps[at].replace(/^\?/, ""), steps[at + 1]];
  const lifetime = steps[at] === step ? 20_000 : 400;
  if (step === "sleep") {
    await delay(Number(argument));
  } else if (step === "replay") {
    const [name, parameters, sigInfo, sigValue] = sent[Number(argument)];
    const interest = new Interest(name);
    Object.assign(interest, { appParameters: parameters, sigInfo, sigValue });
    await express(step, interest, lifetime);
  } else if (step === "unsigned") {
    await express(step, command("rib/register", argument), lifetime);
  } else {
    const interest = step === "announce" ? await announce(argument) : command(step, argument);
    await signer.sign(interest);
    sent.push([interest.name, interest.appParameters, interest.sigInfo, interest.sigValue]);
    await express(step, interest, lifetime);
  }
}
face.close();
