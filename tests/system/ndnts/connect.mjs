// Opens the face that a face URI names, as an NDNts application would, and registers prefixes through it.
import { UnixTransport, TcpTransport, UdpTransport } from "@ndn/node-transport";
import { Forwarder } from "@ndn/fw";
import { L3Face } from "@ndn/l3face";
import { WsTransport } from "@ndn/ws-transport";
import { enableNfdPrefixReg, getPrefix } from "@ndn/nfdmgmt";
import { Name, digestSigning } from "@ndn/packet";

/**
 * @param {string} uri unix:///path, tcp4://host:port, udp4://host:port or ws://host:port
 * @param {{register?: boolean}} [options] register: send produced prefixes to the router as routes
 */
export async function connect(uri, { register = true } = {}) {
  const face = await open(uri);
  face.addRoute(new Name("/"));
  if (register) {
    // NDNts treats WebSocket as a remote link, but the router treats it as local on loopback.
    enableNfdPrefixReg(face, { signer: digestSigning, prefix: getPrefix(true) });
  }
  return face;
}

async function open(uri) {
  const [scheme, rest] = uri.split("://");
  const { hostname: host, port } = scheme === "unix" ? {} : new URL(`http://${rest}`);
  switch (scheme) {
    case "unix": return UnixTransport.createFace({ addRoutes: [] }, rest);
    case "tcp4": return TcpTransport.createFace({ addRoutes: [] }, host, Number(port));
    case "udp4": return openUdp(host, Number(port));
    case "ws": return WsTransport.createFace({ addRoutes: [] }, uri);
    default: throw new Error(`no transport for ${uri}`);
  }
}

async function openUdp(host, port) {
  const transport = await UdpTransport.connect(host, port);
  const face = Forwarder.getDefault().addFace(new L3Face(transport));
  face.localPort = transport.laddr.port;
  return face;
}

/** Prints one JSON line for the test that runs this program. */
export function report(value) {
  process.stdout.write(`${JSON.stringify(value, (_, v) => typeof v === "bigint" ? Number(v) : v)}\n`);
}
