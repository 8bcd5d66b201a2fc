// node consume.mjs FACE-URI NAME [LIFETIME-MS]: sends one Interest; reports Data, Nack or timeout.
import { Interest, Nack } from "@ndn/packet";
import { consume } from "@ndn/endpoint";
import { connect, report } from "./connect.mjs";

const [uri, name, lifetime = "20000"] = process.argv.slice(2);
const face = await connect(uri, { register: false });
// NDNts' own forwarder does not pass Nacks to the consumer, so this program observes them on the face.
let nack;
// Without the abort, the consumer would wait for the end of the Interest's lifetime.
const answered = new AbortController();
face.addEventListener?.("down", () => report({ result: "down" }));
face.fw.addEventListener("pktrx", ({ packet }) => {
  if (packet.l3 instanceof Nack) {
    nack = packet.l3.reason;
    report({ result: "nack", reason: nack });
    face.close();
    answered.abort();
  }
});
try {
  const interest = new Interest(name, Interest.MustBeFresh, Interest.Lifetime(Number(lifetime)));
  const data = await consume(interest, { signal: answered.signal });
  report({ result: "data", name: data.name.toString(), bytes: data.content.length });
} catch (error) {
  if (nack === undefined) {
    report({ result: "timeout", error: String(error) });
  }
}
face.close();
