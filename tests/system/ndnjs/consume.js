// node consume.js FACE-URI NAME [LIFETIME-MS]: sends one Interest with ndn-js; reports Data, Nack or timeout.
const { Interest, Name } = require("ndn-js");
const { connect, report } = require("./connect.js");

const [uri, name, lifetime = "20000"] = process.argv.slice(2);
const face = connect(uri);
const interest = new Interest(new Name(name));
interest.setCanBePrefix(false);
interest.setInterestLifetimeMilliseconds(Number(lifetime));

function end(answer) {
  report(answer);
  face.close();
}

face.expressInterest(
  interest,
  (_interest, data) => end({ result: "data", content: data.getContent().buf().toString() }),
  () => end({ result: "timeout" }),
  (_interest, nack) => end({ result: "nack", reason: nack.getReason() }),
);
