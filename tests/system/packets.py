"""Encodes and decodes packets for tests that check bytes."""

import hashlib
import os
import time


def number(value):
    if value < 253:
        return bytes([value])
    if value < 65536:
        return b"\xfd" + value.to_bytes(2, "big")
    return b"\xfe" + value.to_bytes(4, "big")


def tlv(kind, value):
    return number(kind) + number(len(value)) + value


def name(uri):
    return tlv(7, b"".join(tlv(8, part.encode()) for part in uri.strip("/").split("/") if part))


# A Namehop link field in a packet without Fragment: the sender understands PIT tokens. The first form also asks whether the receiver does.
KNOWS_PIT_TOKENS_ASKS = bytes.fromhex("6405fd03b80101")
KNOWS_PIT_TOKENS_TELLS = bytes.fromhex("6405fd03b80100")


def interest(uri, nonce=b"\1\2\3\4", can_be_prefix=False, must_be_fresh=False, lifetime=60_000, hop_limit=None):
    # The default lifetime is long, so that no test depends on the speed of the host.
    value = name(uri)
    if can_be_prefix:
        value += tlv(0x21, b"")
    if must_be_fresh:
        value += tlv(0x12, b"")
    if nonce is not None:
        value += tlv(0x0A, nonce)
    if lifetime is not None:
        value += tlv(0x0C, lifetime.to_bytes(8, "big") if lifetime > 0xFFFFFFFF else lifetime.to_bytes(4, "big"))
    if hop_limit is not None:
        value += tlv(0x22, bytes([hop_limit]))
    return tlv(5, value)


def segment_interest(uri, version, segment, nonce=b"\1\2\3\4"):
    """Encodes an Interest for one segment of an object of `namehop put`."""
    parts = name(uri)[2:] + tlv(0x36, bytes([version])) + tlv(0x32, bytes([segment]))
    return tlv(5, tlv(7, parts) + tlv(0x0A, nonce) + tlv(0x0C, (60_000).to_bytes(4, "big")))


def digest_interest(packet, nonce=b"\1\2\3\4"):
    """Encodes an Interest for exactly this Data, by its implicit digest."""
    whole = elements(elements(packet)[6])[7] + tlv(1, hashlib.sha256(packet).digest())
    return tlv(5, tlv(7, whole) + tlv(0x0A, nonce) + tlv(0x0C, (60_000).to_bytes(4, "big")))


def data(uri, content=b"", freshness=None):
    return data_of(elements(name(uri))[7], content, freshness)


def data_of(components, content=b"", freshness=None):
    """Encodes Data whose name has these encoded components."""
    signed = tlv(7, components)
    if freshness is not None:
        signed += tlv(0x14, tlv(0x19, freshness.to_bytes(4, "big")))
    signed += tlv(0x15, content) + tlv(0x16, tlv(0x1B, b"\0"))
    return tlv(6, signed + tlv(0x17, hashlib.sha256(signed).digest()))


def command(module, verb, parameters):
    """Encodes a command of the NFD management protocol, signed with DigestSha256. `parameters` is the VALUE of ControlParameters."""
    components = [b"localhost", b"nfd", module.encode(), verb.encode(), tlv(0x68, parameters)]
    prefix = b"".join(tlv(8, component) for component in components)
    empty = tlv(0x24, b"")
    info = tlv(0x2C, tlv(0x1B, b"\0") + tlv(0x26, os.urandom(8)) + tlv(0x28, int(time.time() * 1000).to_bytes(8, "big")))
    value = tlv(0x2E, hashlib.sha256(prefix + empty + info).digest())
    digest = tlv(2, hashlib.sha256(empty + info + value).digest())
    return tlv(5, tlv(7, prefix + digest) + tlv(0x21, b"") + tlv(0x12, b"") + tlv(0x0A, os.urandom(4)) + empty + info + value)


def register(prefix, face, cost=0, origin=255):
    """Encodes the parameters of `rib/register`."""
    integers = ((0x69, face), (0x6F, origin), (0x6A, cost))
    return name(prefix) + b"".join(tlv(kind, value.to_bytes(8, "big")) for kind, value in integers)


def status(packet):
    """Returns status code and text of the response to a command."""
    content = elements(elements(packet)[6])[0x15]
    response = elements(elements(content)[0x65])
    return int.from_bytes(response[0x66], "big"), response[0x67].decode(errors="replace")


def elements(buffer):
    """Returns the VALUEs of the elements in a buffer, by type."""
    found = {}
    while buffer:
        kind, at = read_number(buffer, 0)
        length, at = read_number(buffer, at)
        found[kind], buffer = buffer[at : at + length], buffer[at + length :]
    return found


def read_element(connection, kept=b""):
    """Reads one TLV element from a socket. Returns (type, element, rest)."""
    buffer = kept
    while True:
        parsed = split_element(buffer)
        if parsed:
            return parsed
        received = connection.recv(65536)
        if not received:
            raise EOFError("closed by the router")
        buffer += received


def split_element(buffer):
    try:
        kind, at = read_number(buffer, 0)
        length, at = read_number(buffer, at)
    except IndexError:
        return None
    if len(buffer) < at + length:
        return None
    return kind, buffer[: at + length], buffer[at + length :]


def read_number(buffer, at):
    first = buffer[at]
    if first < 253:
        return first, at + 1
    size = {253: 2, 254: 4, 255: 8}[first]
    if len(buffer) < at + 1 + size:
        raise IndexError
    return int.from_bytes(buffer[at + 1 : at + 1 + size], "big"), at + 1 + size
