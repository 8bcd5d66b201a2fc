"""TAP interfaces as ports (tap://), with the host's kernel as the neighbour."""

import os
import subprocess
import sys

import pytest
from applications import published, same
from conftest import PROGRAM, wait_until
from packets import segment_interest
from port_links import GROUP, content, drops, fetch, ip, is_connected, link_state, needs_root, ports, route

pytestmark = needs_root

# Sends a frame and prints the first NDN frame that arrives.
EXCHANGE = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8624))
tap.bind((sys.argv[1], 0x8624))
tap.settimeout(20)
tap.send(bytes.fromhex(sys.argv[2]))
while True:
    frame, sender = tap.recvfrom(65536)
    if sender[2] != 4:  # PACKET_OUTGOING
        print(frame.hex())
        break
"""
PORT = """[[port]]
uri = "tap://ndn0"
multicast = true
on_demand = true
addresses = ["192.0.2.1/24"]
mtu = 9000
"""


@pytest.fixture
def namespace():
    name = f"drv-{os.getpid()}"
    ip("netns", "add", name)
    ip("-n", name, "link", "set", "lo", "up")
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def inside(namespace, *command, check=True):
    return subprocess.run(["ip", "netns", "exec", namespace, *command], check=check, capture_output=True, text=True)


def start(make_router, namespace):
    router = make_router(ports(0, PORT), start=False)
    router.prefix = ["ip", "netns", "exec", namespace]
    router.start()
    wait_until(lambda: is_connected(router), what="the interface is up")
    return router


def own_address(namespace):
    return inside(namespace, "ip", "-brief", "link", "show", "ndn0").stdout.split()[2]


def test_the_kernel_exchanges_frames_with_the_router(make_router, namespace, tmp_path):
    router = start(make_router, namespace)
    shown = inside(namespace, "ip", "link", "show", "ndn0").stdout
    assert "mtu 9000" in shown and "MULTICAST" in shown, shown
    file = tmp_path / "object"
    file.write_bytes(b"y" * 4000)
    own = own_address(namespace)
    frame = bytes.fromhex((GROUP + own).replace(":", "")) + b"\x86\x24" + segment_interest("/tap/x", 1, 0)
    with published(router, "/tap/x", file, "--object-version", 1):
        reply = inside(namespace, sys.executable, "-c", EXCHANGE, "ndn0", frame.ljust(60, b"\0").hex()).stdout
        # One frame, because the MTU is large enough.
        answer = bytes.fromhex(reply.strip())
        assert answer[12:14] == b"\x86\x24" and b"y" * 4000 in answer, answer[:60]

        # The same over UDP, from a kernel socket.
        inside(namespace, "ip", "address", "add", "192.0.2.2/24", "dev", "ndn0")
        fetched = inside(namespace, PROGRAM, "cat", "/tap/x", "--transport", "udp4://192.0.2.1:6363").stdout
    assert fetched == "y" * 4000
    face = next(face for face in router.json("face", "list") if face["remote_uri"].startswith("udp4://192.0.2.2"))
    assert face["local_uri"].startswith("tap://ndn0?ip=192.0.2.1") and face["mtu_bytes"] == 8800


def test_the_interface_goes_down_and_away_and_comes_back(make_router, namespace):
    router = start(make_router, namespace)
    inside(namespace, "ip", "link", "set", "ndn0", "down")
    wait_until(lambda: link_state(router) == "down", what="the port is down")
    inside(namespace, "ip", "link", "set", "ndn0", "up")
    wait_until(lambda: link_state(router) == "up", what="the port is up")
    address = next(face["local_uri"] for face in router.json("face", "list") if GROUP in face["remote_uri"])
    inside(namespace, "ip", "link", "delete", "ndn0")
    wait_until(lambda: "port reopened" in router.log.read_text() and is_connected(router), what="it is made again")
    assert inside(namespace, "ip", "link", "show", "ndn0").returncode == 0
    inside(namespace, "ip", "address", "add", "192.0.2.2/24", "dev", "ndn0")
    # The kernel sends IPv6 packets by itself. They are not NDN, and are counted.
    wait_until(lambda: drops(router, "not-ndn-frame") + drops(router, "foreign-frame") > 0, what="other frames are counted")
    router.stop()
    assert inside(namespace, "ip", "link", "show", "ndn0", check=False).returncode != 0, "it goes with the router"
    assert address == "tap://ndn0"


def test_two_routers_at_a_bridge_of_the_kernel(make_router, namespace, content):
    """Segments of 8000 bytes in frames of 1500 bytes: over UDP, with next hops resolved across the bridge, and over Ethernet."""
    ip("-n", namespace, "link", "add", "bridge", "type", "bridge")
    ip("-n", namespace, "link", "set", "bridge", "up")
    routers = []
    for end in (0, 1):
        port = f'[[port]]\nuri = "tap://ndn{end}"\nmulticast = true\naddresses = ["192.0.2.{1 + end}/24"]\n'
        router = make_router(ports(end, port), name=f"tap{end}", start=False)
        router.prefix = ["ip", "netns", "exec", namespace]
        routers.append(router.start())
        wait_until(lambda router=router: is_connected(router), what="the interface is up")
        ip("-n", namespace, "link", "set", f"ndn{end}", "master", "bridge")
    near, far = routers
    over_udp = near.json("face", "create", "udp4://192.0.2.2:6363", "--local", "tap://ndn0", "--persistency", "permanent")["face_id"]
    far.json("face", "create", "udp4://192.0.2.1:6363", "--local", "tap://ndn1", "--persistency", "permanent")
    group = next(face["face_id"] for face in near.json("face", "list") if GROUP in face["remote_uri"])
    for prefix, face in [("/udp", over_udp), ("/group", group)]:
        route(near, prefix, face)
        with published(far, prefix, content):
            assert same(fetch(near, prefix), content), prefix
        # A segment is six frames.
        assert near.json("face", "show", face)["in_data"] >= content.stat().st_size // 8000
    assert drops(near, "malformed-frame") == drops(far, "malformed-frame") == 0
