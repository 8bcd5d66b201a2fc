"""Next hops whose link is down: Interests take another next hop, or consumers get a Nack at once. A repaired next hop is used again."""

import os
import time
from contextlib import ExitStack

import pytest
from applications import serving
from conftest import wait_until
from next_hops import holds_with_a_second_next_hop, holds_without_another, is_up, ping
from port_links import Link, connect, ip, link, needs_root, ports, start  # noqa: F401
from strategies import FORWARDING
from test_memif import memif
from test_strategies import SDK, compile_strategy, load

ADDRESSES = ["192.0.2.6", "192.0.2.7"]


@pytest.fixture
def three(make_router):
    near, good, bad = (make_router(name=name) for name in ["near", "good", "bad"])
    with serving(good, "/x"):
        yield near, good, bad


@pytest.mark.parametrize("transport", ["udp", "tcp", "ws"])
def test_a_peer_that_is_killed(three, transport):
    near, good, bad = three
    with ExitStack() as stack:
        stack.enter_context(serving(bad, "/x"))
        face = near.json("face", "create", bad.uri(transport))["face_id"]
        second = near.json("face", "create", good.tcp_uri)["face_id"]

        def mend():
            bad.start()
            stack.enter_context(serving(bad, "/x"))

        holds_with_a_second_next_hop(near, face, second, bad.kill, mend)
        holds_without_another(near, face, second, bad.kill, mend)


def test_no_strategy_uses_a_face_that_is_down(three, tmp_path):
    near, good, bad = three
    load(near, compile_strategy(tmp_path, SDK / "strategies/best-route.c", "loaded"), "--name", "loaded")
    strategies = [*FORWARDING, "loaded"]
    with serving(bad, "/x"):
        face = near.json("face", "create", bad.tcp_uri, "--persistency", "permanent")["face_id"]
        second = near.json("face", "create", good.tcp_uri)["face_id"]
        near.namehop("route", "add", "/x", face, "--cost", "1")
        near.namehop("route", "add", "/x", second, "--cost", "10")
        bad.kill()
        wait_until(lambda: not is_up(near, face), what="the face is down")
        for strategy in strategies:
            near.namehop("strategy", "set", "/x", strategy)
            assert ping(near)["received"] == 20, strategy
        near.namehop("face", "destroy", second)
        for strategy in strategies:
            near.namehop("strategy", "set", "/x", strategy)
            started = time.monotonic()
            report = ping(near)
            assert report["nacks"] == 20 and time.monotonic() - started < 10, (strategy, report)


@needs_root
@pytest.mark.parametrize("end", [0, 1], ids=["interface down", "link cut"])
def test_an_ethernet_link(make_router, link, end):  # noqa: F811
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    good = make_router(name="good", start=False)
    good.prefix = link.inside(0)
    good.start()
    with serving(far, "/x"), serving(good, "/x"):
        face, _ = connect(near, far, link)
        second = near.json("face", "create", good.tcp_uri)["face_id"]

        def cut():
            link.set("down", ends=[end])

        def mend():
            link.set("up", ends=[end])

        holds_with_a_second_next_hop(near, face, second, cut, mend)
        holds_without_another(near, face, second, cut, mend)


@needs_root
def test_a_memif_whose_peer_is_killed(make_router, tmp_path):
    near, far = make_router(ports(0), name="near"), make_router(ports(1), name="far")
    good = make_router(name="good")
    with ExitStack() as stack:
        stack.enter_context(serving(good, "/x"))
        far.namehop("face", "create", memif(tmp_path), "--persistency", "permanent")
        face = near.json("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")["face_id"]
        wait_until(lambda: is_up(near, face), what="the memif connects")
        stack.enter_context(serving(far, "/x"))
        second = near.json("face", "create", good.tcp_uri)["face_id"]

        def mend():
            far.start()
            stack.enter_context(serving(far, "/x"))

        holds_with_a_second_next_hop(near, face, second, far.kill, mend)
        holds_without_another(near, face, second, far.kill, mend)


@pytest.fixture
def ip_link(make_router):
    """Two hosts with addresses on one Ethernet, and a second router on the first host."""
    with Link(f"els{os.getpid()}") as wire:
        for end, address in enumerate(ADDRESSES):
            ip("-n", wire.namespaces[end], "address", "add", f"{address}/24", "dev", wire.devices[end])
        near, far, good = (make_router(name=name, start=False) for name in ["near", "far", "good"])
        sections = {"tcp": "tcp", "udp": "udp", "websocket": "ws"}
        far.extra = "".join(f'[faces.{section}]\nlisten = ["{ADDRESSES[1]}:{getattr(far, port)}"]\n' for section, port in sections.items())
        for router, end in [(near, 0), (far, 1), (good, 0)]:
            router.prefix = wire.inside(end)
        yield wire, near, far.start(), good.start()


@needs_root
@pytest.mark.parametrize("end", [0, 1], ids=["interface down", "link cut"])
@pytest.mark.parametrize("transport", ["udp", "udp with one socket", "tcp", "ws"])
def test_an_ip_link(ip_link, transport, end):
    wire, near, far, good = ip_link
    scheme = transport.split()[0]
    if transport == "udp with one socket":
        near.extra = f'[faces.udp]\nlisten = ["0.0.0.0:{near.udp}"]\n'
    near.start()
    with serving(far, "/x"), serving(good, "/x"):
        remote = far.uri(scheme).replace("127.0.0.1", ADDRESSES[1])
        face = near.json("face", "create", remote, "--persistency", "permanent")["face_id"]
        second = near.json("face", "create", good.tcp_uri)["face_id"]

        def cut():
            wire.set("down", ends=[end])

        def mend():
            wire.set("up", ends=[end])

        holds_with_a_second_next_hop(near, face, second, cut, mend)
        cut()
        wait_until(lambda: not is_up(near, face), seconds=1, what="the face list says so")
        mend()
        wait_until(lambda: is_up(near, face), seconds=5, what="the face list says so")
        holds_without_another(near, face, second, cut, mend)
