// node serve.js FACE-URI PREFIX: registers the prefix with ndn-js and answers each Interest with `here`.
const { Data, Name } = require("ndn-js");
const { connect, newKeyChain, report } = require("./connect.js");

const [uri, prefix] = process.argv.slice(2);
const [face, keyChain] = [connect(uri), newKeyChain()];
face.setCommandSigningInfo(keyChain, keyChain.getDefaultCertificateName());
face.registerPrefix(
  new Name(prefix),
  (_prefix, interest) => {
    const data = new Data(interest.getName());
    data.setContent("here");
    keyChain.sign(data, () => face.putData(data));
  },
  () => report({ registered: false }),
  () => report({ registered: true }),
);
