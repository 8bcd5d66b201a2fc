"""UDP faces send NDNLPv2 IDLE packets to keep their path open."""

import os

import pytest
from conftest import wait_until
from port_links import Link, ip, needs_root

pytestmark = needs_root


@pytest.fixture
def link():
    with Link(f"sk{os.getpid()}") as link:
        for end in (0, 1):
            ip("-n", link.namespaces[end], "address", "add", f"192.0.2.{1 + end}/24", "dev", link.devices[end])
        yield link


def test_permanent_faces_send_idle_packets_and_others_do_not(make_router, link):
    near, far = make_router(name="near", start=False), make_router(name="far", start=False)
    for end, router in enumerate((near, far)):
        router.extra = f'[faces.udp]\nlisten = ["192.0.2.{1 + end}:{router.udp}"]\n'
        router.prefix = link.inside(end)
        router.start()
    uri = f"udp4://192.0.2.2:{far.udp}"
    face = near.json("face", "create", uri, "--persistency", "permanent")["face_id"]
    assert near.json("face", "show", face)["keep_alive"]
    heard = lambda: [one["remote_uri"] for one in far.json("face", "list") if one["remote_uri"] == f"udp4://192.0.2.1:{near.udp}"]
    assert heard() == []
    wait_until(heard, what="an IDLE packet")
    assert far.json("status")["drops"].get("link", {}) == {}
    assert not near.json("face", "update", face, "--keep-alive", "off")["keep_alive"]
    near.stop()
    near.start()
    assert not near.json("face", "show", uri)["keep_alive"]
    near.namehop("face", "destroy", uri)
    made = near.json("face", "create", uri, "--persistency", "persistent")["face_id"]
    assert not near.json("face", "show", made)["keep_alive"]
    refused = near.namehop("face", "create", f"tcp4://192.0.2.2:{far.tcp}", "--keep-alive", "on", check=False)
    assert refused.returncode != 0
