// node key.mjs IDENTITY STEM [ISSUER-STEM]: makes STEM.pem and STEM.ndncert.
import { report } from "./connect.mjs";
import { create } from "./security.mjs";

report(await create(...process.argv.slice(2)));
