// Opens an ndn-js face at the address that a face URI names.
const { generateKeyPairSync } = require("node:crypto");
const { Blob, Face, KeyChain, Name, SafeBag, TcpTransport, UnixTransport } = require("ndn-js");

function connect(uri) {
  const [scheme, rest] = uri.split("://");
  if (scheme === "unix") {
    return new Face(new UnixTransport(), new UnixTransport.ConnectionInfo(rest));
  }
  const [host, port] = rest.split(":");
  return new Face(new TcpTransport(), new TcpTransport.ConnectionInfo(host, Number(port)));
}

/** Makes an in-memory key chain with a new key, which ndn-js itself cannot generate. */
function newKeyChain() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "der" },
  });
  const keyChain = new KeyChain("pib-memory:", "tpm-memory:");
  keyChain.importSafeBag(new SafeBag(new Name("/test/KEY/1"), new Blob(privateKey, false), new Blob(publicKey, false)));
  return keyChain;
}

/** Prints one JSON line for the test that runs this program. */
function report(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

module.exports = { connect, newKeyChain, report };
