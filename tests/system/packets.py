"""Hand-made packets for tests that look at bytes."""

import hashlib


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


def interest(uri, nonce=b"\1\2\3\4", can_be_prefix=False, must_be_fresh=False, lifetime=None, hop_limit=None):
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


def data(uri, content=b"", freshness=None):
    signed = name(uri)
    if freshness is not None:
        signed += tlv(0x14, tlv(0x19, freshness.to_bytes(4, "big")))
    signed += tlv(0x15, content) + tlv(0x16, tlv(0x1B, b"\0"))
    return tlv(6, signed + tlv(0x17, hashlib.sha256(signed).digest()))


def read_element(connection, kept=b""):
    """Reads one TLV element from a socket; gives (type, element, rest)."""
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
