"""Opens a PyNDN face at the address that a face URI names."""

import json
import sys
import time

from pyndn import Face, Name
from pyndn.security import KeyChain
from pyndn.transport.tcp_transport import TcpTransport
from pyndn.transport.unix_transport import UnixTransport


def connect(uri):
    scheme, rest = uri.split("://")
    if scheme == "unix":
        return Face(UnixTransport(), UnixTransport.ConnectionInfo(rest))
    host, port = rest.split(":")
    return Face(TcpTransport(), TcpTransport.ConnectionInfo(host, int(port)))


def new_key_chain():
    """Makes an in-memory key chain with a new key."""
    key_chain = KeyChain("pib-memory:", "tpm-memory:")
    key_chain.setDefaultIdentity(key_chain.createIdentityV2(Name("/test")))
    return key_chain


def run(face, is_done=lambda: False):
    while not is_done():
        face.processEvents()
        time.sleep(0.001)


def report(value):
    print(json.dumps(value), flush=True)


def arguments():
    return sys.argv[1:]
