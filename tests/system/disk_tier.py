"""Helpers of the tests of the Content Store's second tier: a bulk fetch, a file system that can freeze, block devices."""

import hashlib
import os
import select
import subprocess
from contextlib import contextmanager

import pytest
from conftest import PATIENCE, wait_until
from packets import command, data, elements, interest, name, read_element, register, split_element, status, tlv

DATA, INTEREST, LINK_PACKET, FRAGMENT, NACK = 6, 5, 0x64, 0x50, 0x320
# Capacity of the cache in memory, in packets, and bytes of content of a packet.
IN_MEMORY, CONTENT = 20, 4_000
# Number of Interests in flight.
WINDOW = 64
KILLS = 100

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems")


def configuration(path, size="16 MiB", keep=True):
    return f"""
[content_store]
capacity_packets = {IN_MEMORY}
[content_store.disk]
path = "{path}"
capacity_bytes = "{size}"
keep = {str(keep).lower()}
read_timeout_ms = 10000
"""


def content_of(uri, version):
    """Returns content in which every byte depends on name and version, so that torn or mixed content is detected."""
    head = f"{uri} {version} ".encode()
    pattern = hashlib.sha256(head).digest()
    return (head + pattern * (CONTENT // len(pattern)))[:CONTENT]


def version_of(packet):
    """Returns name and version of Data, after checking that its content is right for them."""
    fields = elements(elements(packet)[DATA])
    parts, rest = [], fields[7]
    while rest:
        _, element, rest = split_element(rest)
        parts.append(element[2:].decode())
    uri = "/" + "/".join(parts)
    version = int(fields[0x15].split(b" ", 2)[1])
    assert fields[0x15] == content_of(uri, version), f"wrong Data for {uri}"
    return uri, version


class Application:
    """A raw connection with its receive buffer."""

    def __init__(self, router):
        self.connection, self.kept = router.connect(), b""

    def read(self):
        kind, element, self.kept = read_element(self.connection, self.kept)
        return kind, element

    def buffered(self):
        """Returns the next complete element of the receive buffer, or None."""
        parsed = split_element(self.kept)
        if not parsed:
            return None
        self.kept = parsed[2]
        fields = elements(elements(parsed[1])[LINK_PACKET]) if parsed[0] == LINK_PACKET else {}
        # Do not unwrap a Nack.
        return parsed if not fields or NACK in fields else split_element(fields[FRAGMENT])

    def receive(self):
        self.kept += self.connection.recv(1 << 20)

    def command(self, verb, parameters):
        self.connection.sendall(command("rib", verb, parameters))
        _, element = self.read()
        assert status(element)[0] == 200, element
        return self

    def produce(self, prefix):
        return self.command("register", register(prefix, 0))

    def end_producing(self, prefix):
        integers = ((0x69, 0), (0x6F, 255))
        return self.command("unregister", name(prefix) + b"".join(tlv(kind, value.to_bytes(8, "big")) for kind, value in integers))


def fetch(router, names, version=None):
    """Fetches the names, with a producer of this version or without a producer.

    Returns the versions received, by name, and the number of Interests that reached the producer.
    """
    consumer = Application(router)
    producer = Application(router).produce("/k") if version is not None else None
    waiting, names = 0, list(names)
    todo, found, asked = iter(names), {}, 0
    answered = 0
    applications = [application for application in (consumer, producer) if application]
    while answered < len(names):
        while waiting < WINDOW and (uri := next(todo, None)):
            consumer.connection.sendall(interest(uri, nonce=os.urandom(4)))
            waiting += 1
        ready, _, _ = select.select([application.connection for application in applications], [], [], PATIENCE)
        assert ready, f"{answered} of {len(names)} were answered; {disk(router)}"
        for application in applications:
            if application.connection in ready:
                application.receive()
            while parsed := application.buffered():
                kind, element, _ = parsed
                if kind == INTEREST:
                    asked += 1
                    uri = uri_of_interest(element)
                    application.connection.sendall(data(uri, content_of(uri, version)))
                else:
                    waiting, answered = waiting - 1, answered + 1
                    if kind == DATA:
                        uri, its_version = version_of(element)
                        found[uri] = its_version
    if producer:
        producer.end_producing("/k")
    for application in applications:
        application.connection.close()
    return found, asked


def uri_of_interest(packet):
    rest, parts = elements(elements(packet)[INTEREST])[7], []
    while rest:
        _, element, rest = split_element(rest)
        parts.append(element[2:].decode())
    return "/" + "/".join(parts)


def names(count, first=0):
    return [f"/k/{number}" for number in range(first, first + count)]


def disk(router):
    return router.json("cs", "info")["disk"]


def wait_for_state(router, state):
    wait_until(lambda: disk(router)["state"] == state, what=f"the disk is {state}")


@contextmanager
def loop_device(image, size=24 << 20):
    """Makes a block device on top of a file."""
    if not image.exists():
        with open(image, "wb") as opened:
            opened.truncate(size)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def freezable(tmp_path):
    """Mounts a new file system; yields its folder and a function that freezes or thaws it."""
    image = tmp_path / "image"
    with open(image, "wb") as opened:
        opened.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with mounted(tmp_path / "slow", "-o", "loop", image) as folder:
        is_frozen = False

        def freeze(wanted):
            nonlocal is_frozen
            if wanted != is_frozen:
                subprocess.run(["fsfreeze", "--freeze" if wanted else "--unfreeze", str(folder)], check=True)
                is_frozen = wanted

        try:
            yield folder, freeze
        finally:
            freeze(False)


@contextmanager
def mounted(folder, *arguments):
    folder.mkdir()
    subprocess.run(["mount", *map(str, arguments), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
