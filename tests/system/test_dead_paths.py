"""Connections whose path fails silently, or whose local address is removed: the faces detect it, and the connecting side reconnects."""

import os
import subprocess
import time

import pytest
from applications import serving
from conftest import wait_until
from port_links import ip, needs_root

pytestmark = needs_root

NEAR, FAR = "192.0.2.1", "198.51.100.1"


class Path:
    """Two hosts with a kernel router between them."""

    def __init__(self, name):
        self.near, self.middle, self.far = (f"{name}{end}" for end in "amb")

    def __enter__(self):
        for namespace in (self.near, self.middle, self.far):
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        for end, address in ((self.near, NEAR), (self.far, FAR)):
            inner, gateway = f"toward-{end[-1]}", address[:-1] + "254"
            ip("link", "add", "veth0", "netns", end, "type", "veth", "peer", "name", inner, "netns", self.middle)
            for namespace, device, own in ((end, "veth0", address), (self.middle, inner, gateway)):
                ip("-n", namespace, "address", "add", f"{own}/24", "dev", device)
                ip("-n", namespace, "link", "set", device, "up")
            ip("-n", end, "route", "add", "default", "via", gateway)
        ip("netns", "exec", self.middle, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        return self

    def __exit__(self, *_):
        for namespace in (self.near, self.middle, self.far):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def cut(self, how="add"):
        """Drops all packets in the middle from now on, in both directions."""
        for address in (NEAR, FAR):
            ip("-n", self.middle, "route", how, "blackhole", f"{address}/32")

    def mend(self):
        self.cut("delete")


@pytest.fixture
def path():
    with Path(f"sd{os.getpid()}") as path:
        yield path


@pytest.fixture
def routers(make_router, path):
    near, far = make_router(name="near", start=False), make_router(name="far", start=False)
    for router, namespace in ((near, path.near), (far, path.far)):
        router.extra = (
            "[faces]\nblocked_timeout_s = 4\n"
            f'[faces.tcp]\nlisten = ["0.0.0.0:{router.tcp}"]\n'
            f'[faces.websocket]\nlisten = ["0.0.0.0:{router.ws}"]\n'
        )
        router.prefix = ["ip", "netns", "exec", namespace]
        router.start()
    return near, far


def connect(near, far, transport):
    uri = f"tcp4://{FAR}:{far.tcp}" if transport == "tcp" else f"ws://{FAR}:{far.ws}"
    near.namehop("face", "create", uri, "--persistency", "permanent")
    wait_until(lambda: is_up(near), what="the face is up")
    near.namehop("route", "add", "/far", uri)


def connections(router):
    schemes = ("tcp4:", "ws:", "wsclient:")
    return [face for face in router.json("face", "list") if face["remote_uri"].startswith(schemes)]


def is_up(router):
    return [face["is_up"] for face in connections(router)] == [True]


def ping(near):
    """True if the other host answers."""
    return near.namehop("ping", "/far", "--count", "1", "--timeout", "500ms", check=False).returncode == 0


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_a_face_in_use_is_down_soon_after_its_path_died(path, routers, transport):
    near, far = routers
    connect(near, far, transport)
    with serving(far, "/far"):
        assert ping(near)
        path.cut()
        began = time.monotonic()
        wait_until(lambda: not ping(near) and not is_up(near), what="the face is down")
        assert time.monotonic() - began < 20
        assert [face["local_uri"] for face in connections(near)] == ["null://"]
        path.mend()
        wait_until(lambda: is_up(near), what="the face is up again")
        wait_until(lambda: ping(near), what="answers come again")


def test_both_ends_of_an_idle_connection_notice_within_a_minute(path, routers):
    near, far = routers
    connect(near, far, "tcp")
    connect_ws = f"ws://{FAR}:{far.ws}"
    near.namehop("face", "create", connect_ws, "--persistency", "permanent")
    wait_until(lambda: [face["is_up"] for face in connections(near)] == [True, True] and len(connections(far)) == 2, what="both faces are up")
    path.cut()
    wait_until(lambda: [face["is_up"] for face in connections(near)] == [False, False], what="both faces are down")
    wait_until(lambda: connections(far) == [], what="the accepted ones are closed")


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_a_connection_ends_when_its_local_address_goes(path, routers, transport):
    near, far = routers
    connect(near, far, transport)
    with serving(far, "/far"):
        assert ping(near)
        # The connecting host moves to another network.
        ip("-n", path.near, "address", "delete", f"{NEAR}/24", "dev", "veth0")
        wait_until(lambda: [(face["is_up"], face["local_uri"]) for face in connections(near)] == [(False, "null://")], seconds=3, what="the face is down")
        ip("-n", path.near, "address", "add", f"{NEAR}9/24", "dev", "veth0")
        ip("-n", path.near, "route", "add", "default", "via", f"{NEAR[:-1]}254")
        wait_until(lambda: is_up(near), seconds=15, what="the face is up again")
        assert f"{NEAR}9:" in connections(near)[0]["local_uri"]
        assert ping(near)
        # The accepting host loses its address too.
        ip("-n", path.far, "address", "delete", f"{FAR}/24", "dev", "veth0")
        wait_until(lambda: connections(far) == [], seconds=3, what="what was accepted is closed")
