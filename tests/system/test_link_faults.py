"""Link faults over each kind of face, with a second next hop and without one. Tests common to Ethernet and IP are in test_link_state.

`make link-test` runs all cases. `make test` omits cases that resemble others, because each waits for a timeout.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest
from applications import serving
from conftest import ROOT, wait_until
from next_hops import KNOWN_S, holds_with_a_second_next_hop, holds_without_another, is_up, ping
from packets import elements, tlv
from port_links import Link, ip, is_connected, needs_root, ports, start
from test_dead_paths import FAR, NEAR, Path
from test_internet_ports import NETWORKS, RoutedLink, bare, port
from test_memif import memif

pytestmark = needs_root

LONG = pytest.mark.skipif(not os.environ.get("LINKS"), reason="by `make link-test` only")

BLOCKED_S = 4
# One queue at each end, because AF_XDP serves only one queue here.
QUEUES = ["numrxqueues", 1, "numtxqueues", 1]
MOVED = "192.0.2.19"


@contextmanager
def second_router(make_router, prefix):
    """Starts another producer, to which the first host has a face without faults."""
    good = make_router(name="good", start=False)
    good.prefix = prefix
    good.start()
    with serving(good, "/x"):
        yield good


def until_up(near, face, seconds=20):
    wait_until(lambda: is_up(near, face), seconds=seconds, what="the face is up")


def holds(near, face, second, cut, mend, known_s=KNOWN_S):
    until_up(near, face)
    holds_with_a_second_next_hop(near, face, second, cut, mend, known_s)
    if known_s == KNOWN_S:
        cut()
        wait_until(lambda: not is_up(near, face), seconds=1, what="the face list says so")
        mend()
    until_up(near, face)
    holds_without_another(near, face, second, cut, mend, known_s)


# Interfaces that are ports.


# Cases by driver and fault. `make test` omits those marked LONG.
INTERFACE_CELLS = {
    ("xdp", "link cut"): [], ("xdp", "interface down"): LONG, ("xdp", "interface removed"): LONG, ("xdp", "peer killed"): LONG,
    ("dev", "peer killed"): [], ("dev", "peer stopped"): LONG, ("dev", "interface removed"): LONG,
}  # fmt: skip


@pytest.mark.parametrize("driver, fault", [pytest.param(*cell, marks=marks) for cell, marks in INTERFACE_CELLS.items()])
def test_an_interface(make_router, driver, fault):
    with Link(f"elf{os.getpid()}", *QUEUES) as link:
        addresses = [f"02:00:00:00:00:0{end + 1}" for end in (0, 1)]

        def fix_addresses():
            for end in (0, 1):
                link.set("address", addresses[end], ends=[end])

        fix_addresses()
        near = start(make_router, link, 0, f'[[port]]\nuri = "{driver}://veth0"\n[faces]\nblocked_timeout_s = {BLOCKED_S}\n')
        far = start(make_router, link, 1)
        with second_router(make_router, link.inside(0)) as good, ExitStack() as stack:
            stack.enter_context(serving(far, "/x"))
            create = lambda router, remote, local: router.json("face", "create", remote, "--local", local, "--persistency", "permanent")["face_id"]
            face = create(near, link.uri(1), f"{driver}://veth0")
            create(far, link.uri(0), link.local(1))
            second = near.json("face", "create", good.tcp_uri)["face_id"]

            def cut():
                if fault == "interface removed":
                    link.remove()
                elif fault == "peer killed":
                    far.kill()
                elif fault == "peer stopped":
                    far.process.send_signal(signal.SIGSTOP)
                else:
                    link.set("down", ends=[0 if fault == "interface down" else 1])

            def mend():
                if fault == "interface removed":
                    link.make()
                    fix_addresses()
                elif fault == "peer killed":
                    far.start()
                    stack.enter_context(serving(far, "/x"))
                elif fault == "peer stopped":
                    far.process.send_signal(signal.SIGCONT)
                else:
                    link.set("up")

            # The link stays up when its peer fails, so the router can detect the failure only by a timeout.
            holds(near, face, second, cut, mend, BLOCKED_S if fault.startswith("peer") else KNOWN_S)


# UDP and VXLAN on ports, over a kernel router: the interface of the port stays up when the path behind the router fails.
ENCAPSULATIONS = {"udp4": "udp4://{}:6363", "vxlan4": "vxlan4://{}?vni=7"}
ENCAPSULATION_CELLS = {
    ("udp4", "interface down"): LONG, ("udp4", "peer killed"): LONG, ("udp4", "path drops everything"): [],
    ("vxlan4", "interface down"): [], ("vxlan4", "peer killed"): LONG, ("vxlan4", "path drops everything"): LONG,
}  # fmt: skip


@pytest.mark.parametrize("kind, fault", [pytest.param(*cell, marks=marks) for cell, marks in ENCAPSULATION_CELLS.items()])
def test_a_face_over_ip_on_a_port(make_router, kind, fault):
    addresses, gateways, _ = NETWORKS["udp4"]
    with RoutedLink(f"ele{os.getpid()}") as link:
        lines = [port(link, end, [addresses[end]], f'gateways = ["{gateways[end]}"]') for end in (0, 1)]
        near, far = (start(make_router, link, end, f"{lines[end]}[faces]\nblocked_timeout_s = {BLOCKED_S}\n") for end in (0, 1))
        with second_router(make_router, link.inside(0)) as good, ExitStack() as stack:
            stack.enter_context(serving(far, "/x"))

            def create(router, end):
                remote = ENCAPSULATIONS[kind].format(bare(addresses[1 - end]))
                return router.json("face", "create", remote, "--local", link.local(end), "--persistency", "permanent")["face_id"]

            face = create(near, 0)
            create(far, 1)
            second = near.json("face", "create", good.tcp_uri)["face_id"]

            def blackhole(how):
                for address in addresses:
                    ip("-n", link.middle, "route", how, "blackhole", f"{bare(address)}/32")

            def cut():
                if fault == "peer killed":
                    far.kill()
                elif fault == "path drops everything":
                    blackhole("add")
                else:
                    link.set("down", ends=[0])

            def mend():
                if fault == "peer killed":
                    far.start()
                    stack.enter_context(serving(far, "/x"))
                elif fault == "path drops everything":
                    blackhole("delete")
                else:
                    link.set("up", ends=[0])

            holds(near, face, second, cut, mend, KNOWN_S if fault == "interface down" else BLOCKED_S)


@pytest.fixture
def taps(make_router):
    """Two routers whose TAP interfaces are ports of one bridge, and a second router beside them."""
    namespace = f"elt{os.getpid()}"
    ip("netns", "add", namespace)
    try:
        ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", namespace, "link", "add", "bridge", "type", "bridge")
        ip("-n", namespace, "link", "set", "bridge", "up")
        inside = ["ip", "netns", "exec", namespace]
        routers = []
        for end in (0, 1):
            port = f'[[port]]\nuri = "tap://ndn{end}"\naddresses = ["192.0.2.{1 + end}/24"]\n'
            router = make_router(ports(end, port), name=f"tap{end}", start=False)
            router.extra += f"[faces]\nblocked_timeout_s = {BLOCKED_S}\n"
            router.prefix = inside
            routers.append(router.start())
            wait_until(lambda router=router: is_connected(router), what="the interface is up")
            ip("-n", namespace, "link", "set", f"ndn{end}", "master", "bridge")
        with second_router(make_router, inside) as good:
            yield namespace, *routers, good
    finally:
        ip("netns", "delete", namespace)


@pytest.mark.parametrize("fault", ["interface down", pytest.param("interface removed", marks=LONG), pytest.param("peer stopped", marks=LONG)])
def test_a_tap_interface(taps, fault):
    namespace, near, far, good = taps
    second = near.json("face", "create", good.tcp_uri)["face_id"]

    def create(router, end):
        remote = f"udp4://192.0.2.{2 - end}:6363"
        return router.json("face", "create", remote, "--local", f"tap://ndn{end}", "--persistency", "permanent")["face_id"]

    def cut():
        if fault == "peer stopped":
            far.process.send_signal(signal.SIGSTOP)
        elif fault == "interface removed":
            # The near router makes its interface again at once, but outside of the bridge.
            ip("-n", namespace, "link", "delete", "ndn0")
        else:
            ip("-n", namespace, "link", "set", "ndn0", "down")

    def mend():
        if fault == "peer stopped":
            far.process.send_signal(signal.SIGCONT)
        elif fault == "interface removed":
            wait_until(lambda: is_connected(near), what="the interface is made again")
            ip("-n", namespace, "link", "set", "ndn0", "master", "bridge")
        else:
            ip("-n", namespace, "link", "set", "ndn0", "up")

    with serving(far, "/x"):
        face = create(near, 0)
        create(far, 1)
        # The removal is two faults in turn: an interface that the kernel reports as gone, and a new one without a path.
        known_s = {"interface down": KNOWN_S, "interface removed": KNOWN_S + BLOCKED_S, "peer stopped": BLOCKED_S}[fault]
        holds(near, face, second, cut, mend, known_s)


@LONG
def test_a_memif_whose_peer_is_stopped(make_router, tmp_path):
    near, far = (make_router(f"{ports(end)}[faces]\nblocked_timeout_s = {BLOCKED_S}\n", name=f"end{end}") for end in (0, 1))
    with second_router(make_router, []) as good, serving(far, "/x"):
        far.namehop("face", "create", memif(tmp_path), "--persistency", "permanent")
        face = near.json("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")["face_id"]
        second = near.json("face", "create", good.tcp_uri)["face_id"]
        stop, go_on = (lambda number=number: far.process.send_signal(number) for number in (signal.SIGSTOP, signal.SIGCONT))
        holds(near, face, second, stop, go_on, BLOCKED_S)


# Sockets.


@pytest.fixture
def far_away(make_router):
    """Two hosts with a kernel router between them, and a second router on the first host."""
    with Path(f"elp{os.getpid()}") as path, ExitStack() as stack:
        near, far = (make_router(f"[faces]\nblocked_timeout_s = {BLOCKED_S}\n", name=name, start=False) for name in ["near", "far"])
        for router, namespace, address in [(near, path.near, "0.0.0.0"), (far, path.far, FAR)]:
            router.extra += "".join(
                f'[faces.{section}]\nlisten = ["{address}:{port}"]\n'
                for section, port in [("tcp", router.tcp), ("udp", router.udp), ("websocket", router.ws)]
            )
            router.prefix = ["ip", "netns", "exec", namespace]
            router.start()
        good = stack.enter_context(second_router(make_router, near.prefix))
        stack.enter_context(serving(far, "/x"))
        yield path, near, far, good


def faces(near, far, good, scheme):
    remote = far.uri(scheme).replace("127.0.0.1", FAR)
    face = near.json("face", "create", remote, "--persistency", "permanent")["face_id"]
    return face, near.json("face", "create", good.tcp_uri)["face_id"]


@pytest.mark.parametrize("scheme", ["udp", pytest.param("tcp", marks=LONG), pytest.param("ws", marks=LONG)])
def test_a_path_that_drops_everything(far_away, scheme):
    path, near, far, good = far_away
    face, second = faces(near, far, good, scheme)
    holds(near, face, second, path.cut, path.mend, BLOCKED_S)


@pytest.mark.parametrize("scheme", ["udp", "tcp", pytest.param("ws", marks=LONG)])
def test_another_address(far_away, scheme):
    """The host changes its address. Its packets leave from the new address, and Interests take the other next hop meanwhile."""
    path, near, far, good = far_away
    face, second = faces(near, far, good, scheme)
    has = NEAR

    def remove():
        ip("-n", path.near, "address", "delete", f"{has}/24", "dev", "veth0")

    def add():
        nonlocal has
        has = MOVED if has == NEAR else NEAR
        ip("-n", path.near, "address", "add", f"{has}/24", "dev", "veth0")
        ip("-n", path.near, "route", "add", "default", "via", f"{NEAR[:-1]}254")

    holds(near, face, second, remove, add)
    assert f"{has}:" in near.json("face", "show", face)["local_uri"]


@pytest.mark.parametrize("scheme", ["udp", "tcp", "ws"])
def test_another_address_at_once(far_away, scheme):
    """The host gets the new address before it loses the old one, so it always has a route."""
    path, near, far, good = far_away
    ip("-n", path.near, "address", "add", "198.18.0.1/24", "dev", "veth0")
    ip("-n", path.middle, "address", "add", "198.18.0.254/24", "dev", "toward-a")
    face, second = faces(near, far, good, scheme)
    near.namehop("route", "add", "/x", face, "--cost", "1")
    near.namehop("route", "add", "/x", second, "--cost", "10")
    until_up(near, face)
    ip("-n", path.near, "route", "replace", "default", "via", "198.18.0.254")
    ip("-n", path.near, "address", "delete", f"{NEAR}/24", "dev", "veth0")
    began = time.monotonic()
    wait_until(lambda: "198.18.0.1:" in near.json("face", "show", face)["local_uri"] and is_up(near, face), what="the face has moved")
    assert time.monotonic() - began < 3
    assert ping(near)["received"] == 20


# Faces that are created while their link is cut.


@pytest.fixture
def cut_link():
    """Two hosts with addresses on one Ethernet, whose far end is down."""
    with Link(f"elc{os.getpid()}", *QUEUES) as link:
        for end in (0, 1):
            ip("-n", link.namespaces[end], "address", "add", f"192.0.2.{6 + end}/24", "dev", link.devices[end])
        link.set("down", ends=[1])
        time.sleep(1.2)
        yield link


def test_faces_that_are_made_while_the_link_is_cut_are_down(make_router, cut_link):
    uris = ["udp4://192.0.2.7:6363", "udp4://192.0.2.7:6364", "tcp4://192.0.2.7:6363", "ws://192.0.2.7:9696"]
    for listens in ["0.0.0.0", "127.0.0.1", "192.0.2.6"]:
        near = make_router(ports(0), name=f"near-{listens}", start=False)
        near.extra += f'[faces.udp]\nlisten = ["{listens}:{near.udp}"]\n[faces.multicast]\ninterfaces = ["veth0"]\n'
        near.extra += f'[[face]]\nuri = "{uris[0]}"\npersistency = "permanent"\n'
        near.prefix = cut_link.inside(0)
        near.start()
        made = [near.json("face", "create", uri, "--persistency", "permanent")["face_id"] for uri in uris[1:]]
        for local in ["xdp://veth0"]:
            arguments = ["face", "create", cut_link.uri(1), "--local", local, "--persistency", "permanent"]
            made.append(near.json(*arguments)["face_id"])
        listed = lambda: [one for one in near.json("face", "list") if one["face_id"] in made or one["remote_uri"] == uris[0] or "224.0.23.170" in one["remote_uri"]]
        wait_until(lambda: len(listed()) == len(uris) + 2, what="the configured ones are made")
        assert not any(one["is_up"] for one in listed()), listed()
        cut_link.set("up", ends=[1])
        works = lambda: {one["remote_uri"] for one in listed() if one["is_up"]}
        expected = {one["remote_uri"] for one in listed() if not one["remote_uri"].startswith(("tcp", "ws"))}
        wait_until(lambda: works() == expected, seconds=5, what=f"they are up: {works()}")
        cut_link.set("down", ends=[1])
        wait_until(lambda: works() == set(), seconds=2, what="they are down again")
        near.stop()


# Peers that run another forwarder (other_forwarder.py).


@contextmanager
def other_forwarder(kind, prefix, address, folder):
    """Runs a peer at UDP port 6363 of an address. Yields the process and a function that returns the names it was asked for."""
    log = folder / f"{kind}.log"
    program = [*prefix, sys.executable, str(ROOT / "tests/system/other_forwarder.py"), kind, address, "6363"]
    with open(log, "w") as output, subprocess.Popen(program, stdout=output) as peer:
        try:
            wait_until(lambda: "ready" in log.read_text(), what="the peer")
            yield peer, lambda: log.read_text().splitlines()[1:]
        finally:
            peer.kill()


def was_probed(names):
    return any("namehop-probe" in name for name in names())


def learn_about(near, face, names):
    """Lets a peer fall silent once while its path works, so that the router asks it."""
    wait_until(lambda: is_up(near, face), what="the face is up")
    near.namehop("route", "add", "/quiet", face)
    near.namehop("route", "add", "/x", face)
    assert ping(near)["received"] == 20
    assert not was_probed(names), "a peer that answers is not asked"
    wait_until(lambda: near.namehop("ping", "/quiet", "--count", "1", "--timeout", "3s", check=False) and was_probed(names), what="the probe")
    assert is_up(near, face) and ping(near)["received"] == 20
    near.namehop("route", "remove", "/x", face)
    drops = near.json("status")["drops"].get("engine", {})
    assert not {"unmatched-nack", "nack-not-point-to-point"} & set(drops), drops


def stays_up(near, face, cut, mend):
    """A peer that answers nothing but Interests that it can serve may be silent for any time."""
    near.namehop("route", "add", "/x", face)
    cut()
    assert ping(near)["received"] == 0
    time.sleep(BLOCKED_S + 2)
    assert is_up(near, face)
    mend()
    wait_until(lambda: ping(near, 5)["received"] == 5, what="the peer answers again")


@pytest.mark.parametrize("kind", ["nfd", "ndnd"])
def test_a_path_to_another_forwarder_that_drops_everything(far_away, tmp_path, kind):
    path, near, _, good = far_away
    with other_forwarder(kind, ["ip", "netns", "exec", path.far], FAR, tmp_path) as (_, names):
        face = near.json("face", "create", f"udp4://{FAR}:6363", "--persistency", "permanent")["face_id"]
        learn_about(near, face, names)
        if kind == "nfd":
            second = near.json("face", "create", good.tcp_uri)["face_id"]
            holds(near, face, second, path.cut, path.mend, BLOCKED_S)
        else:
            stays_up(near, face, path.cut, path.mend)


@pytest.mark.parametrize("kind", ["nfd", pytest.param("ndnd", marks=LONG)])
def test_another_forwarder_beyond_a_port_that_is_stopped(make_router, tmp_path, kind):
    with Link(f"elo{os.getpid()}") as link:
        port = '[[port]]\nuri = "dev://veth0"\naddresses = ["192.0.2.1/24"]\n'
        near = start(make_router, link, 0, f"{port}[faces]\nblocked_timeout_s = {BLOCKED_S}\n")
        ip("-n", link.namespaces[1], "address", "add", "192.0.2.2/24", "dev", link.devices[1])
        with second_router(make_router, link.inside(0)) as good, other_forwarder(kind, link.inside(1), "192.0.2.2", tmp_path) as (peer, names):
            create = ["face", "create", "udp4://192.0.2.2:6363", "--local", link.local(0), "--persistency", "permanent"]
            face = near.json(*create)["face_id"]
            learn_about(near, face, names)
            stop, go_on = (lambda number=number: peer.send_signal(number) for number in (signal.SIGSTOP, signal.SIGCONT))
            if kind == "nfd":
                second = near.json("face", "create", good.tcp_uri)["face_id"]
                holds(near, face, second, stop, go_on, BLOCKED_S)
            else:
                stays_up(near, face, stop, go_on)


def test_a_router_answers_the_interest_of_another_one(router):
    name = tlv(7, tlv(8, b"localhop") + tlv(32, b"namehop-probe") + tlv(8, os.urandom(8)))
    probe = tlv(5, name + tlv(0x0A, os.urandom(4)) + tlv(0x0C, (500).to_bytes(2, "big")) + tlv(0x22, b"\1"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(20)
        for _ in range(3):
            began = time.monotonic()
            peer.sendto(probe, ("127.0.0.1", router.udp))
            fields = elements(elements(peer.recv(65536))[100])
            assert fields[800] == tlv(801, bytes([150])), "Nack with reason NoRoute"
            assert name in fields[80] and time.monotonic() - began < 0.5
            probe = probe[:-11] + os.urandom(4) + probe[-7:]
