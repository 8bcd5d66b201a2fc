"""Two hosts with the configuration of the README: the first listens only on loopback, and the second listens for remote peers."""

import os
import re
import socket
import subprocess
import sys

import pytest
from applications import published, same
from conftest import wait_until
from packets import interest
from port_links import Link, content, ip, needs_root  # noqa: F401

pytestmark = needs_root

NETWORKS = {"udp4": ("192.0.2.6", "192.0.2.7", 24), "udp6": ("2001:db8::6", "2001:db8::7", 64)}


@pytest.fixture
def computers(make_router, tmp_path):
    with Link(f"oc{os.getpid()}") as link:
        for first, second, bits in NETWORKS.values():
            for end, address in enumerate([first, second]):
                options = ["nodad"] if ":" in address else []
                ip("-n", link.namespaces[end], "address", "add", f"{address}/{bits}", "dev", link.devices[end], *options)
        near, far = make_router(name="near", start=False), make_router(name="far", start=False)
        near.extra = f'[faces.udp]\nlisten = ["127.0.0.1:{near.udp}", "[::1]:{near.udp}"]\n'
        far.extra = f'[faces.udp]\nlisten = ["0.0.0.0:{far.udp}", "[::]:{far.udp}"]\n'
        for end, router in enumerate([near, far]):
            router.prefix = link.inside(end)
            router.start()
        yield link, near, far


def uri(scheme, address, port):
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


def udp_sockets(link):
    listed = subprocess.run([*link.inside(0), "ss", "-Hnuap"], check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if "namehop" in line]


def udp_faces(router):
    return [face for face in router.json("face", "list") if face["remote_uri"].startswith("udp")]


@pytest.mark.parametrize("scheme", NETWORKS)
def test_who_listens_to_nobody_else_reaches_other_computers(computers, content, scheme):  # noqa: F811
    link, near, far = computers
    first, second, _ = NETWORKS[scheme]
    before = udp_sockets(link)
    near.namehop("route", "add", "/far", uri(scheme, second, far.udp))
    with published(far, "/far/object", content):
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    (face,) = udp_faces(near)
    assert face["remote_uri"] == uri(scheme, second, far.udp)
    port = int(re.fullmatch(re.escape(uri(scheme, first, "")) + r"(\d+)", face["local_uri"])[1])
    assert len(udp_sockets(link)) == len(before) + 1

    # The face's socket accepts packets only from its peer, not from other programs on the far host.
    family = socket.AF_INET6 if ":" in second else socket.AF_INET
    asks = interest("/far/object").hex()
    script = f"import socket; socket.socket({int(family)}, socket.SOCK_DGRAM).sendto(bytes.fromhex('{asks}'), ('{first}', {port}))"
    subprocess.run([*link.inside(1), sys.executable, "-c", script], check=True)
    assert [peer["face_id"] for peer in udp_faces(near)] == [face["face_id"]]
    refused = near.namehop("face", "update", face["face_id"], "--persistency", "on-demand", check=False)
    assert refused.returncode != 0

    # The far router restarts: a refused datagram does not disable the face for good.
    far.stop()
    near.namehop("ping", "/far", "--count", "2", "--interval", "50ms", "--timeout", "100ms", check=False)
    wait_until(lambda: not udp_faces(near)[0]["is_up"], what="the face is down")
    far.start()
    wait_until(lambda: udp_faces(near)[0]["is_up"], what="the face is used again")
    with published(far, "/far/object", content):
        near.namehop("cs", "erase", "/")
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    assert [peer["face_id"] for peer in udp_faces(near)] == [face["face_id"]]

    # The near host gets another address, as in another network.
    first, second, bits = NETWORKS[scheme]
    options = ["nodad"] if ":" in first else []
    ip("-n", link.namespaces[0], "address", "delete", f"{first}/{bits}", "dev", link.devices[0])
    ip("-n", link.namespaces[0], "address", "add", f"{first}9/{bits}", "dev", link.devices[0], *options)
    wait_until(lambda: "the face has a new source address" in near.log.read_text(), what="the change is noticed")
    with published(far, "/far/object", content):
        near.namehop("cs", "erase", "/")
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    assert near.log.read_text().count("the face has a new source address") == 1
    wait_until(lambda: len(udp_sockets(link)) == len(before) + 1, what="the old socket is closed")

    near.namehop("face", "destroy", face["face_id"])
    wait_until(lambda: udp_sockets(link) == before, what="the socket goes with its face")
