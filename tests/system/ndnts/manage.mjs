// node manage.mjs FACE-URI REMOTE: uses the NFD management protocol with NDNts and reports each response.
import { Name } from "@ndn/packet";
import {
  ChannelStatus, CsInfo, FacePersistency, FaceQuery, FaceStatus, GeneralStatus, RibEntry, StrategyChoice,
  ControlParameters, invoke, invokeCsErase, list,
} from "@ndn/nfdmgmt";
import { connect, report } from "./connect.mjs";

const [uri, remote] = process.argv.slice(2);
const face = await connect(uri, { register: false });

async function command(verb, parameters) {
  const response = await invoke(verb, parameters);
  let body;
  try {
    body = ControlParameters.decodeFromResponseBody(response);
  } catch {
    body = {};
  }
  report({ verb, code: response.statusCode, text: response.statusText, faceId: body.faceId, cost: body.cost,
    strategy: body.strategy?.toString(), capacity: body.capacity, persistency: body.facePersistency, mtu: body.mtu });
  return { code: response.statusCode, ...body };
}

const created = await command("faces/create", { uri: remote, facePersistency: FacePersistency.Permanent, mtu: 1400 });
await command("faces/create", { uri: remote });
await command("faces/create", { uri: "udp4://not-canonical.example:6363" });
await command("faces/update", { faceId: created.faceId, facePersistency: FacePersistency.Persistent });
await command("faces/update", { faceId: 60000, facePersistency: FacePersistency.Persistent });
await command("rib/register", { name: new Name("/manage/a"), faceId: created.faceId, cost: 7, origin: 255 });
await command("rib/register", { name: new Name(`/${Array(33).fill("x").join("/")}`), faceId: created.faceId });
report({ rib: (await list(RibEntry)).map(({ name, route }) => ({ name: name.toString(), route })) });
await command("strategy-choice/set", { name: new Name("/manage"), strategy: new Name("/localhost/nfd/strategy/multicast") });
await command("strategy-choice/set", { name: new Name("/manage"), strategy: new Name("/localhost/nfd/strategy/none-such") });
report({ strategies: (await list(StrategyChoice)).map(({ name, strategy }) => [name.toString(), strategy.toString()]) });
await command("strategy-choice/unset", { name: new Name("/manage") });
await command("cs/config", { capacity: 1234 });
report({ cs: await list(CsInfo) });
report({ erased: await invokeCsErase(new Name("/manage")) });
report({ general: await list(GeneralStatus) });
report({ channels: (await list(ChannelStatus)).map(({ localUri }) => localUri) });
report({ faces: (await list(FaceStatus)).map(({ faceId, uri: u, localUri }) => ({ faceId, uri: u, localUri })) });
report({ query: (await list(FaceQuery({ uri: remote }))).map(({ faceId }) => faceId) });
await command("rib/unregister", { name: new Name("/manage/a"), faceId: created.faceId, origin: 255 });
report({ rib: (await list(RibEntry)).map(({ name, route }) => ({ name: name.toString(), route })) });
await command("faces/destroy", { faceId: created.faceId });
report({ query: (await list(FaceQuery({ uri: remote }))).map(({ faceId }) => faceId) });
face.close();
