"""The packet counters of faces agree with a tshark capture of the link."""

import os
import subprocess
import time
from collections import Counter

import pytest
from applications import face_to, published, same
from conftest import wait_until
from packets import elements, split_element
from port_links import Link, connect, ip, needs_root, ports, route

pytestmark = needs_root

INTEREST, DATA, LP_PACKET, FRAGMENT, NACK = 5, 6, 0x64, 0x50, 0x320
ETHERTYPE = 0x8624
SEGMENTS, SEGMENT_BYTES = 100, 1_000
ADDRESSES = ["192.0.2.1", "192.0.2.2"]
# UDP port of the far end, in its network namespace.
PORT = 6363


class Capture:
    """A tshark capture at one end of the link."""

    def __init__(self, link, end, file):
        self.link, self.end, self.file = link, end, file

    def __enter__(self):
        command = [*self.link.inside(self.end), "tshark", "-q", "-l", "-n", "-i", self.link.devices[self.end], "-w", str(self.file)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # tshark prints this line when it captures.
        for line in self.process.stderr:
            if "Capturing on" in line:
                break
        wait_until(lambda: self.file.exists() and self.file.stat().st_size > 0, what="the capture begins")
        return self

    def __exit__(self, *_):
        # Wait for the file to stop growing: tshark discards packets that it has not read when it ends.
        size = -1
        while (now := self.file.stat().st_size) != size:
            size = now
            time.sleep(1)
        self.process.terminate()
        self.process.communicate()

    def packets(self):
        """Returns the number of packets by (is in UDP, sender's MAC address, kind of packet)."""
        wanted = f"eth.type == {ETHERTYPE} or udp.port == {PORT}"
        fields = ["eth.src", "udp.payload", "data.data"]
        command = ["tshark", "-r", str(self.file), "-n", "-Y", wanted, "-T", "fields", "-E", "separator=/t"]
        for field in fields:
            command += ["-e", field]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        counts = Counter()
        for line in text.splitlines():
            sender, datagram, frame = line.split("\t")
            kind = kind_of(bytes.fromhex((datagram or frame).replace(":", "")))
            if kind is not None:
                counts[bool(datagram), sender, kind] += 1
        return counts


def kind_of(frame):
    """Returns the kind of the packet in a frame that may end in padding. Returns None for an IDLE packet."""
    kind, packet, _ = split_element(frame)
    if kind != LP_PACKET:
        return kind
    fields = elements(elements(packet)[LP_PACKET])
    if FRAGMENT not in fields:
        return None
    return NACK if NACK in fields else split_element(fields[FRAGMENT])[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_tshark_counts_what_faces_count(make_router, tmp_path, workers):
    content = tmp_path / "object.bin"
    content.write_bytes(os.urandom(SEGMENTS * SEGMENT_BYTES))
    with Link(f"prc{os.getpid()}") as link:
        for end, address in enumerate(ADDRESSES):
            ip("-n", link.namespaces[end], "address", "add", f"{address}/24", "dev", link.devices[end])
        routers = []
        for end, name in enumerate(["near", "far"]):
            router = make_router(ports(end, f'[faces.udp]\nlisten = ["{ADDRESSES[end]}:{PORT}"]'), name=name, start=False)
            router.prefix = link.inside(end)
            routers.append(router.start())
        near, far = routers
        ether_face, _ = connect(near, far, link)
        udp_face = near.json("face", "create", f"udp4://{ADDRESSES[1]}:{PORT}", "--persistency", "permanent")["face_id"]
        route(near, "/ether", ether_face), route(near, "/udp", udp_face), route(near, "/nowhere", udp_face)
        capture = Capture(link, 0, tmp_path / "capture.pcapng")
        with published(far, "/ether", content, "-s", SEGMENT_BYTES), published(far, "/udp", content, "-s", SEGMENT_BYTES), capture:
            for prefix in ["/ether", "/udp"]:
                assert same(near.namehop("cat", prefix, text=False).stdout, content)
            # The far end has no route, so it answers with Nacks.
            near.namehop("ping", "/nowhere", "-c", "3", "-i", "10ms", "-o", "200ms", check=False)
            addresses = [link.address(0), link.address(1)]
            faces = {
                (False, 0): near.json("face", "show", ether_face),
                (False, 1): face_to(far, link.uri(0)),
                (True, 0): near.json("face", "show", udp_face),
                (True, 1): face_to(far, f"udp4://{ADDRESSES[0]}:{PORT}"),
            }
        seen = capture.packets()
        for (is_udp, end), face in faces.items():
            for kind, word in [(INTEREST, "interests"), (DATA, "data"), (NACK, "nacks")]:
                sent, received = (seen[is_udp, addresses[who], kind] for who in (end, 1 - end))
                assert (face[f"out_{word}"], face[f"in_{word}"]) == (sent, received), (face["remote_uri"], word, seen)
        for is_udp in (False, True):
            assert seen[is_udp, addresses[1], DATA] >= SEGMENTS, "the whole object went over it"
        assert seen[True, addresses[1], NACK] > 0
        assert {router.namehop("status").stdout.count("DROPPED") for router in routers} == {0}
