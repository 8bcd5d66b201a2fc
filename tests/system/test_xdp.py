"""Network interfaces over AF_XDP sockets (xdp://), with a packet socket at the other end."""

import os
import subprocess
import sys

import pytest
from applications import published, same
from conftest import wait_until
from port_links import Link, content, drops, fetch, ip, is_connected, link_state, needs_root, route, start

pytestmark = needs_root

# Addresses of the two ports, and of the kernels on the same interfaces.
ADDRESSES = ["192.0.2.1", "192.0.2.2"]
KERNEL = ["198.51.100.1", "198.51.100.2"]
# Connects to a closed port of the other kernel, which refuses the connection.
REFUSED = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=10)
except ConnectionRefusedError:
    print("refused")
"""


@pytest.fixture
def link():
    # One queue at each end, because such ports serve only one queue here.
    with Link(f"nh{os.getpid()}", "numrxqueues", 1, "numtxqueues", 1) as link:
        yield link


def pair(make_router, link):
    """Two routers with faces to each other: plain Ethernet, in a VLAN, and over UDP. Returns each router with its face ids."""
    schemes, faces = ["xdp", "dev"], []
    for end in (0, 1):
        local = f"{schemes[end]}://{link.devices[end]}"
        port = f'[[port]]\nuri = "{local}"\naddresses = ["{ADDRESSES[end]}/24"]\nmulticast = true\n'
        router = start(make_router, link, end, port)
        ends = [(link.uri(1 - end), local), (link.uri(1 - end), f"{local}?vlan=7"), (f"udp4://{ADDRESSES[1 - end]}:6363", local)]
        create = lambda remote, local: router.json("face", "create", remote, "--local", local, "--persistency", "permanent")
        faces.append((router, [create(*each)["face_id"] for each in ends]))
    return faces


def test_packets_go_both_ways_and_the_link_is_followed(make_router, link, content):
    (near, near_faces), (far, far_faces) = pair(make_router, link)
    for kind in range(3):
        for client, face, server, prefix in ((near, near_faces[kind], far, f"/far/{kind}"), (far, far_faces[kind], near, f"/near/{kind}")):
            route(client, prefix, face)
            with published(server, prefix, content):
                assert same(fetch(client, prefix), content), (kind, prefix)
    assert drops(near, "malformed-frame") == 0
    # A packet socket would not receive the frames that the XDP program redirects.
    beside = near.namehop("face", "create", link.uri(1), "--local", "dev://veth0", check=False)
    assert beside.returncode != 0 and "xdp://veth0 is open on this interface" in beside.stderr, beside.stderr
    # The kernel receives all other frames.
    for end in (0, 1):
        ip("-n", link.namespaces[end], "address", "add", f"{KERNEL[end]}/24", "dev", link.devices[end])
    command = [*link.inside(1), sys.executable, "-c", REFUSED, KERNEL[0]]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "refused\n"

    link.set("down", ends=[0])
    wait_until(lambda: link_state(near) == "down", what="the link is down")
    link.set("up", ends=[0])
    wait_until(lambda: is_connected(near), what="the link is up")
    near.namehop("cs", "erase", "/")
    with published(far, "/far/0", content):
        assert same(fetch(near, "/far/0"), content)

    link.remove()
    wait_until(lambda: link_state(near) == "down", what="the interface is gone")
    link.make()
    wait_until(lambda: "port reopened" in near.log.read_text() and is_connected(near), what="the port is open again")
    route(near, "/group", next(face["face_id"] for face in near.json("face", "list") if "01:00:5e" in face["remote_uri"]))
    with published(far, "/group", content):
        assert same(fetch(near, "/group"), content)


def test_the_log_says_why_a_port_cannot_follow_its_interface(make_router, link, content):
    (near, near_faces), (far, _) = pair(make_router, link)
    route(near, "/far", near_faces[0])
    addresses = [link.address(0), link.address(1)]
    options = link.options

    def make_again(mtu):
        link.remove()
        wait_until(lambda: link_state(near) == "down", what="the interface is gone")
        link.options = (*options, "mtu", mtu)
        link.make()
        for end in (0, 1):
            link.set("address", addresses[end], ends=[end])

    # AF_XDP needs each frame to fit into a page.
    make_again(9000)
    reason = "the MTU of veth0 is 9000, but AF_XDP supports at most"
    wait_until(lambda: reason in near.log.read_text(), what="the reason in the log")
    make_again(1500)
    wait_until(lambda: is_connected(near), what="the port is open again")
    with published(far, "/far", content):
        assert same(fetch(near, "/far"), content)
    assert near.log.read_text().count(reason) == 1, "however often it is tried"
