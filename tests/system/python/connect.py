"""Opens a python-ndn application on the face that a face URI names."""

import json
import sys

from ndn.appv2 import NDNApp
from ndn.security import KeychainDigest
from ndn.transport.stream_face import TcpFace, UnixFace
from ndn.transport.udp_face import UdpFace


def application(uri):
    scheme, rest = uri.split("://")
    if scheme == "unix":
        face = UnixFace(rest)
    else:
        host, port = rest.split(":")
        face = {"tcp4": TcpFace, "udp4": UdpFace}[scheme](host, int(port))
    return NDNApp(face=face)


def report(value):
    print(json.dumps(value), flush=True)


def arguments():
    return sys.argv[1:]
