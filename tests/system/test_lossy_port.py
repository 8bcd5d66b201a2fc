"""Links over ports that lose frames, links that are cut and repaired, and peers that do not return PIT tokens."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from applications import connect_application, published, same
from conftest import wait_until
from packets import data, interest, read_element
from port_links import Link, connect, content, drops, ip, link, needs_root, ports, route, start

pytestmark = needs_root
FOLDER = Path(__file__).parent
LOSS, SEED = 0.01, 7


class RelayedLink(Link):
    """Two network interfaces, each in its own namespace, with a relay between them."""

    def __init__(self, name):
        super().__init__(name)
        self.middle = f"{name}r"

    def __enter__(self):
        ip("netns", "add", self.middle)
        super().__enter__()
        command = ["ip", "netns", "exec", self.middle, sys.executable, str(FOLDER / "relay.py"), "relay0", "relay1", str(SEED)]
        self.relay = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lose(0)
        return self

    def __exit__(self, *_):
        self.relay.kill()
        self.relay.communicate()
        super().__exit__()
        subprocess.run(["ip", "netns", "delete", self.middle], check=False, capture_output=True)

    def make(self):
        for end, namespace in enumerate(self.namespaces):
            device, other = self.devices[end], f"relay{end}"
            ip("link", "add", device, "netns", namespace, "type", "veth", "peer", "name", other, "netns", self.middle)
            ip("-n", self.middle, "link", "set", other, "up")
        self.set("up")

    def lose(self, share):
        """Sets the share of frames to drop from now on. Returns the counters so far, for frames from the near end and from the far end."""
        self.relay.stdin.write(f"{share}\n"), self.relay.stdin.flush()
        return json.loads(self.relay.stdout.readline())


@pytest.fixture
def relayed():
    with RelayedLink(f"pr{os.getpid()}") as link:
        yield link


def retransmissions(router, face):
    """Returns the number of link reliability retransmissions of a face, from the metrics."""
    command = [*router.prefix, sys.executable, "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"]
    text = subprocess.run([*command, f"http://127.0.0.1:{router.metrics}/metrics"], check=True, capture_output=True, text=True).stdout
    (found,) = re.findall(rf'namehop_face_retransmissions_total{{face="{face}"[^}}]*}} (\d+)', text)
    return int(found)


def cat(router, prefix):
    """Fetches with a window that link reliability can protect, and with a lifetime longer than link reliability's attempts."""
    return router.namehop("cat", prefix, "--congestion", "fixed", "--window", "16", "--lifetime", "2s", text=False).stdout


def test_reliability_repairs_what_a_port_link_loses(make_router, relayed, content):
    near, far = start(make_router, relayed, 0), start(make_router, relayed, 1)
    there, back = connect(near, far, relayed)
    for router, face in [(near, there), (far, back)]:
        router.namehop("face", "update", face, "--reliability", "on")
    route(near, "/object", there)
    relayed.lose(LOSS)
    with published(far, "/object", content):
        assert same(cat(near, "/object"), content)
        assert drops(near, "retransmissions-exhausted") == drops(far, "retransmissions-exhausted") == 0, "the link lost nothing for good"
        lost = relayed.lose(LOSS)
        # A segment of 8000 bytes is six frames at an MTU of 1500.
        assert sum(direction["lost_protected"] for direction in lost) > 10 and lost[1]["carried"] > 6 * 3_000_000 / 8_000
        # Link reliability retransmitted each lost frame, and each frame that arrived twice because its acknowledgement was lost.
        for sender, face, receiver, direction in [(near, there, far, 0), (far, back, near, 1)]:
            again = lambda: (retransmissions(sender, face), relayed.lose(LOSS)[direction]["lost_protected"] + drops(receiver, "duplicate-sequence"))
            wait_until(lambda: len(set(again())) == 1, 10, what=f"as many frames were sent again as were lost: {again()}")
        assert all(direction["overrun"] == 0 for direction in relayed.lose(LOSS)), "the relay itself lost nothing more"
        # The link is cut during a fetch, and repaired.
        near.namehop("cs", "erase", "/object")
        outcome = []
        fetching = threading.Thread(target=lambda: outcome.append(cat(near, "/object")))
        fetching.start()
        carried = lambda: relayed.lose(LOSS)[1]["carried"]
        begun = carried()
        wait_until(lambda: carried() > begun + 500, what="the fetch has begun")
        cut = [direction["carried"] for direction in relayed.lose(1)]
        wait_until(lambda: drops(near, "retransmissions-exhausted") > 0, 20, what="what is lost is sent again, and then given up")
        assert [direction["carried"] for direction in relayed.lose(1)][0] <= cut[0] + 1, "nothing goes through a link that is cut"
        relayed.lose(LOSS)
        fetching.join()
        assert same(outcome[0], content)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_peer_that_returns_no_tokens(make_router, link, workers):
    near = make_router(ports(0), name="near", start=False)
    near.prefix = link.inside(0)
    near.start()
    face = near.json("face", "create", link.uri(1), "--local", link.local(0), "--persistency", "permanent")["face_id"]
    route(near, "/bare", face)
    command = [*link.inside(1), sys.executable, str(FOLDER / "tokenless.py"), link.devices[1]]
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert peer.stdout.readline() == "ready\n"
        consumer, _ = connect_application(near)
        rest = b""
        for number in range(50):
            consumer.sendall(interest(f"/bare/{number}/x", os.urandom(4)))
        expected = {data(f"/bare/{number}/x") for number in range(50)}
        while expected:
            _, packet, rest = read_element(consumer, rest)
            expected.remove(packet)
        assert near.json("face", "show", face)["in_data"] == 50 and not any(near.json("status")["drops"].values())
    finally:
        peer.kill()
        peer.communicate()
