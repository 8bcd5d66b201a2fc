// Keys and certificates in the files that NDN programs exchange: STEM.pem (PKCS#8) and STEM.ndncert (base64).
import { readFile, writeFile } from "node:fs/promises";
import { Certificate, CertNaming, createVerifier, ECDSA, generateSigningKey } from "@ndn/keychain";
import { Component, Data, digestSigning, ValidityPeriod } from "@ndn/packet";
import { Decoder, Encoder } from "@ndn/tlv";

const lines = (bytes) => Buffer.from(bytes).toString("base64").match(/.{1,64}/g).join("\n");

/** Makes a key and its certificate: self-signed, or issued by the key of another stem. */
export async function create(identity, stem, issuerStem) {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const [pkcs8, spki] = await Promise.all([
    crypto.subtle.exportKey("pkcs8", pair.privateKey),
    crypto.subtle.exportKey("spki", pair.publicKey),
  ]);
  const importPkcs8 = [new Uint8Array(pkcs8), new Uint8Array(spki)];
  const [privateKey, publicKey] = await generateSigningKey(identity, ECDSA, { importPkcs8 });
  const certificate = issuerStem ?
    await Certificate.issue({
      publicKey, issuerPrivateKey: await load(issuerStem), issuerId: Component.from("issuer"), validity: thisYear(),
    }) :
    await Certificate.selfSign({ privateKey, publicKey, validity: thisYear() });
  await writeFile(`${stem}.pem`, `-----BEGIN PRIVATE KEY-----\n${lines(pkcs8)}\n-----END PRIVATE KEY-----\n`);
  await writeFile(`${stem}.ndncert`, `${lines(Encoder.encode(certificate.data))}\n`);
  return { key: privateKey.name.toString(), certificate: certificate.name.toString() };
}

function thisYear() {
  return new ValidityPeriod(Date.now() - 60_000, Date.now() + 365 * 86_400_000);
}

async function certificateOf(stem) {
  const text = await readFile(`${stem}.ndncert`, "ascii");
  return Certificate.fromData(Decoder.decode(Buffer.from(text, "base64"), Data));
}

/** Loads the signer with the key of a stem; `digest` is plain SHA-256. */
export async function load(stem) {
  if (stem === "digest") {
    return digestSigning;
  }
  const pem = await readFile(`${stem}.pem`, "ascii");
  const pkcs8 = Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ""), "base64");
  const certificate = await certificateOf(stem);
  const importPkcs8 = [pkcs8, certificate.publicKeySpki];
  const [signer] = await generateSigningKey(CertNaming.toKeyName(certificate.name), ECDSA, { importPkcs8 });
  return signer;
}

/** Verifies Data signed with the key of a stem; `digest` is plain SHA-256. */
export async function loadVerifier(stem) {
  return stem === "digest" ? digestSigning : createVerifier(await certificateOf(stem));
}
