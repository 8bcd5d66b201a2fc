"""A slow network interface with more traffic than it can send, beside a fast interface."""

import json
import os
import subprocess
import threading
import time

from applications import face_to, published, same, serving
from conftest import wait_until
from packets import interest
from port_links import connect, content, drops, fetch, ip, link, needs_root, route, start

pytestmark = needs_root


class SlowNeighbour:
    """A second interface of the near end, shaped to 1 Mbit/s, with its peer at the far end."""

    def __init__(self, link):
        (left, self.far), self.address = link.namespaces, "02:00:00:00:00:77"
        ip("link", "add", "slow0", "netns", left, "type", "veth", "peer", "name", "slow1", "netns", self.far)
        ip("-n", left, "link", "set", "slow0", "up")
        ip("-n", self.far, "link", "set", "slow1", "address", self.address, "up")
        shape = ["qdisc", "add", "dev", "slow0", "root", "tbf", "rate", "1mbit", "burst", "5000", "limit", "20000"]
        subprocess.run([*link.inside(0), "tc", *shape], check=True, capture_output=True)

    def received(self):
        """Returns the number of received frames. Frames of the kernel have other destination addresses and are not counted."""
        command = ["ip", "-n", self.far, "-s", "-j", "link", "show", "slow1"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]["stats64"]["rx"]["packets"]


class Flood:
    """An application that sends 4,000 Interests per second, ten times the capacity of the slow interface."""

    def __init__(self, router):
        self.connection, self.running, self.count = router.connect(), True, 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        begin = time.monotonic()
        while self.running:
            while self.running and self.count < 4000 * (time.monotonic() - begin):
                name = f"/slow/{'x' * 200}/{self.count}"
                self.connection.sendall(interest(name, nonce=os.urandom(4), lifetime=500))
                self.count += 1
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


def seconds_to_fetch(router, name, file):
    """Returns the shortest time of three fetches, because the tests share the CPUs with other programs."""
    taken = []
    for _ in range(3):
        router.namehop("cs", "erase", name)
        before = time.monotonic()
        assert same(fetch(router, name), file)
        taken.append(time.monotonic() - before)
    return min(taken)


def ping(router, name):
    """Checks that all of twenty pings are answered."""
    pings = router.json("ping", name, "-c", "20", "-i", "20ms", "-o", "20s")
    assert pings["received"] == 20, pings


def test_a_congested_port_keeps_nobody_else_waiting_and_no_frame_stays_behind(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    slow = SlowNeighbour(link)
    slow_uri = f"ether://[{slow.address}]"
    slow_face = near.json("face", "create", slow_uri, "--local", "dev://slow0", "--persistency", "permanent")["face_id"]
    for prefix, face in {"/object": there, "/there": there, "/slow": slow_face}.items():
        route(near, prefix, face)
    with published(far, "/object", content), serving(far, "/there"), serving(near, "/here"):
        unloaded = seconds_to_fetch(near, "/object", content)
        ping(near, "/there")
        with Flood(near) as flood:
            wait_until(lambda: drops(near, "send-queue-full") > 0, what="the slow port is congested")
            loaded = seconds_to_fetch(near, "/object", content)
            for name in ("/here", "/there"):
                ping(near, name)
            wait_until(lambda: flood.count > 4000, what="there is a flood")
        # The object alone would take at least 24 s at the rate of the slow port.
        assert loaded < 3 * unloaded + 5, f"{loaded:.2f} s beside a flood, {unloaded:.2f} s without"
    # Wait for two queues to drain: the router's, which holds half of the frames that may wait, and the kernel's. Frames have 275 bytes, and
    # the rate is 125,000 bytes per second.
    sent = lambda: face_to(near, slow_uri)["out_interests"] - drops(near, "send-queue-full")
    wait_until(lambda: slow.received() >= sent(), what="everything that was accepted comes out")
    assert near.json("status")["drops"].get("link", {}).keys() <= {"send-queue-full", "receive-ring-full"}
