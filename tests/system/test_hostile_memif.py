"""A hostile neighbour on a memif link: it lies in its handshake and in its rings' counters and descriptors, and disconnects at any time."""

import array
import fcntl
import mmap
import os
import random
import socket
import struct
import time

import pytest
from applications import serving
from conftest import wait_until
from packets import interest, split_element
from port_links import drops, needs_root, ports

pytestmark = needs_root

MESSAGE_BYTES, VERSION, LINK = 128, 0x0200, 7
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
TO_SERVER, COOKIE, CONTINUES = 1, 0x03E31F20, 1
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
# Two rings of 16 slots, followed by a buffer of 2048 bytes for each slot.
LOG2_SLOTS = 4
SLOTS = 1 << LOG2_SLOTS
RING_BYTES = 128 + 16 * SLOTS
RINGS = (0, RING_BYTES)
FLAGS, HEAD, TAIL, DESCRIPTORS = 4, 6, 64, 128
BUFFERS, BUFFER_BYTES = 4096, 2048
REGION_BYTES = BUFFERS + 2 * SLOTS * BUFFER_BYTES
SEED = 11


class Ended(Exception):
    """The router has closed the link."""


class Peer:
    """A memif client of the router. It follows the protocol unless a test makes it lie."""

    def __init__(self, path, steps=6):
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(5)
        self.control.connect(path)
        file = os.memfd_create("peer", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, REGION_BYTES)
        fcntl.fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)
        self.memory = mmap.mmap(file, REGION_BYTES)
        self.bells = [os.eventfd(0), os.eventfd(0)]
        self.sent = self.taken = 0
        for ring in RINGS:
            self.memory[ring : ring + 4] = struct.pack("=I", COOKIE)
        ring = lambda index: struct.pack("=HHHIB", TO_SERVER if index == 0 else 0, 0, 0, RINGS[index], LOG2_SLOTS)
        messages = [
            (INIT, struct.pack("=HIB", VERSION, LINK, 0), None),
            (ADD_REGION, struct.pack("=HQ", 0, REGION_BYTES), file),
            (ADD_RING, ring(0), self.bells[0]),
            (ADD_RING, ring(1), self.bells[1]),
            (CONNECT, b"", None),
        ]
        assert self.hear() == HELLO
        for kind, body, descriptor in messages[:steps]:
            self.say(kind, body, descriptor)
            assert self.hear() == (CONNECTED if kind == CONNECT else ACK)
        os.close(file)
        if steps > len(messages):
            # Empty buffers for frames from the router.
            for slot in range(SLOTS):
                self.describe(1, slot, 0, 0, BUFFER_BYTES, BUFFERS + (SLOTS + slot) * BUFFER_BYTES)
            self.write(1, HEAD, SLOTS)

    def close(self):
        self.control.close()
        self.memory.close()
        for bell in self.bells:
            os.close(bell)

    def say(self, kind, body=b"", descriptor=None):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))] if descriptor is not None else []
        self.control.sendmsg([(struct.pack("=H", kind) + body).ljust(MESSAGE_BYTES, b"\0")], rights)

    def hear(self):
        try:
            message = self.control.recv(MESSAGE_BYTES)
        except ConnectionError:
            message = b""
        kind = struct.unpack_from("=H", message)[0] if message else DISCONNECT
        if kind == DISCONNECT:
            raise Ended
        return kind

    def has_ended(self):
        self.control.settimeout(0.001)
        try:
            self.hear()
        except TimeoutError:
            return False
        except Ended:
            return True
        return False

    def read(self, ring, place):
        return struct.unpack_from("=H", self.memory, RINGS[ring] + place)[0]

    def write(self, ring, place, value):
        struct.pack_into("=H", self.memory, RINGS[ring] + place, value & 0xFFFF)

    def describe(self, ring, slot, flags, region, length, offset):
        at = RINGS[ring] + DESCRIPTORS + 16 * (slot % SLOTS)
        struct.pack_into("=HHII", self.memory, at, flags, region, length, offset)

    def offer(self, *chain):
        """Enqueues a frame with these descriptors: flags, region, length, offset."""
        for descriptor in chain:
            self.describe(0, self.sent, *descriptor)
            self.sent += 1
        self.write(0, HEAD, self.sent)
        os.eventfd_write(self.bells[0], 1)

    def send(self, packet):
        at = BUFFERS + self.sent % SLOTS * BUFFER_BYTES
        self.memory[at : at + len(packet)] = packet
        self.offer((0, 0, len(packet), at))

    def receive(self):
        """Dequeues the next packet from the router. The packet must have arrived."""
        _, _, length, offset = struct.unpack_from("=HHII", self.memory, RINGS[1] + DESCRIPTORS + 16 * (self.taken % SLOTS))
        self.taken += 1
        self.describe(1, self.taken - 1, 0, 0, BUFFER_BYTES, offset)
        self.write(1, HEAD, self.taken + SLOTS)
        return self.memory[offset : offset + length]

    def has_answer(self, seconds):
        end = time.monotonic() + seconds
        while self.read(1, TAIL) == self.taken & 0xFFFF and time.monotonic() < end:
            time.sleep(0.005)
        return self.read(1, TAIL) != self.taken & 0xFFFF

    def expect_answer(self):
        """Checks that the router answers an Interest. The answer is a Nack, because there is no route."""
        ask = lambda: self.send(interest(f"/peer/{os.urandom(4).hex()}", os.urandom(4)))
        # The router drops packets until it has seen that the link is up.
        wait_until(lambda: ask() or self.has_answer(0.5), 20, "an answer")
        while self.has_answer(0.02):
            assert split_element(self.receive())[0] == 0x64


@pytest.fixture
def router(make_router):
    return make_router(ports(0))


@pytest.fixture
def path(router, tmp_path):
    """The socket path of a memif face."""
    socket_path = f"{tmp_path}/memif.sock"
    router.json("face", "create", f"memif://{socket_path}?id={LINK}", "--persistency", "permanent")
    return socket_path


def connect(path):
    """Connects a well-behaved peer, as soon as the router has noticed that the previous one is gone."""

    def attempt():
        try:
            return Peer(path)
        except (Ended, OSError):
            return None

    return wait_until(attempt, 20, "the router takes the next peer")


def test_lies_about_frames_are_counted_and_those_about_counts_end_the_link(router, path):
    peer = connect(path)
    peer.expect_answer()
    end = REGION_BYTES
    lies = [
        [(0, 0, 100, end - 99)],
        [(0, 0, 100, 0xFFFFFFFF)],
        [(0, 0, 0xFFFFFFFF, 0)],
        [(0, 0, 0xFFFFFFFF, 0xFFFFFFFF)],
        [(0, 1, 100, 0)],
        [(0, 0xFFFF, 100, 0)],
        [(0, 0, 0, 0)],
        [(0, 0, 20_000, BUFFERS)],
        [(CONTINUES, 0, 9_000, BUFFERS), (0, 0, 9_000, BUFFERS)],
        [(CONTINUES, 0, 10, BUFFERS), (CONTINUES, 3, 10, BUFFERS), (0, 0, 10, BUFFERS)],
    ]
    for count, chain in enumerate(lies, start=1):
        peer.offer(*chain)
        peer.expect_answer()
        wait_until(lambda: drops(router, "malformed-frame") == count, what=f"{chain} is counted")
    # Bytes inside the region that are not a packet: a drop like any other.
    peer.offer((0, 0, 100, RINGS[0]))
    peer.expect_answer()
    for lie in [lambda one: one.write(0, HEAD, one.sent + SLOTS + 1), lambda one: one.write(0, HEAD, one.sent - 1)]:
        lie(peer)
        os.eventfd_write(peer.bells[0], 1)
        wait_until(peer.has_ended, 20, "the router ends the link")
        peer.close()
        peer = connect(path)
        peer.expect_answer()
    # Invalid receive buffers. The router notices when it has something to send.
    for slot in range(SLOTS):
        peer.describe(1, slot, 0, 9, 0xFFFFFFFF, 0xFFFFFFFF)
    peer.send(interest("/peer/again", os.urandom(4)))
    wait_until(peer.has_ended, 20, "the router ends the link")
    peer.close()
    connect(path).expect_answer()


def test_noise_in_rings_and_sudden_ends_harm_nobody_else(router, path):
    chance, frames = random.Random(SEED), 0
    with serving(router, "/here"):
        end = time.monotonic() + 4
        while time.monotonic() < end:
            # One peer in three disconnects during the handshake.
            steps = chance.choice([0, 1, 2, 3, 4, 6, 6, 6, 6, 6, 6, 6])
            try:
                peer = Peer(path, steps)
            except (Ended, OSError):
                continue
            for _ in range(chance.randrange(60) if steps == 6 else 0):
                frames += 1
                at = chance.randrange(RINGS[1] + RING_BYTES)
                noise = chance.randbytes(chance.choice([1, 2, 16, 200]))
                peer.memory[at : at + len(noise)] = noise
                for ring in (0, 1):
                    count = chance.randrange(65536) if chance.random() < 0.05 else peer.read(ring, TAIL) + chance.randrange(SLOTS + 1)
                    peer.write(ring, HEAD, count)
                os.eventfd_write(peer.bells[0], 1)
            peer.close()
        assert frames > 200
        # Applications are served meanwhile, and so is the next well-behaved peer.
        pings = router.json("ping", "/here", "-c", "5", "-i", "10ms", "-o", "10s")
        assert pings["received"] == 5
    connect(path).expect_answer()
    assert router.process.poll() is None
