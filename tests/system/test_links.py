"""Links between routers: fragments, loss and reliability, multicast, idle faces, and link fields and face events that applications see."""

import json
import os
import random
import select
import socket
import subprocess
import threading
from contextlib import contextmanager

import pytest
from applications import connect_application, face_to, published, same
from conftest import PATIENCE, Router, wait_until
from ndn.app_support.nfd_mgmt import make_command
from ndn.encoding import InterestParam, make_interest
from packets import data, interest, name, number, read_element, read_number, tlv
from port_links import ip

INCOMING_FACE_ID, NEXT_HOP_FACE_ID = 812, 816
MEGABYTE = 1_000_000


@pytest.fixture
def content(tmp_path):
    file = tmp_path / "object.bin"
    file.write_bytes(os.urandom(MEGABYTE))
    return file


@pytest.mark.parametrize("mtu", [1400, 300])
def test_big_segments_through_a_small_mtu(make_router, content, mtu):
    """8000-byte segments in fragments, in both directions of the link."""
    near, far = make_router(name="near"), make_router(name="far", start=False)
    far.extra = f'[faces.udp]\nlisten = ["127.0.0.1:{far.udp}"]\nmtu = {mtu}\n'
    far.start()
    with LossyLink(far.udp, loss=0) as wire:
        link = near.json("face", "create", wire.uri, "--persistency", "permanent", "--mtu", str(mtu))["face_id"]
        near.namehop("route", "add", "/far", link)
        with published(far, "/far/object", content):
            assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
        back = face_to(far, wire.far_uri)
        assert back["mtu_bytes"] == mtu
        # The reverse direction, over the on-demand face of the peer.
        far.namehop("route", "add", "/near", back["face_id"])
        with published(near, "/near/object", content):
            assert same(far.namehop("cat", "/near/object", text=False).stdout, content)
        assert mtu - 50 < wire.longest <= mtu and wire.carried > 2 * MEGABYTE / mtu
    assert near.json("face", "show", link)["mtu_bytes"] == mtu


class LossyLink:
    """Carries datagrams between one peer and a router, and drops some of them."""

    def __init__(self, port, loss, seed=1):
        self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.near.bind(("127.0.0.1", 0))
        self.far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.far.bind(("127.0.0.1", 0))
        for end in (self.near, self.far):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.far.connect(("127.0.0.1", port))
        self.loss, self.chance = loss, random.Random(seed)
        self.carried = self.lost = self.longest = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.carry)

    uri = property(lambda self: f"udp4://127.0.0.1:{self.near.getsockname()[1]}")
    far_uri = property(lambda self: f"udp4://127.0.0.1:{self.far.getsockname()[1]}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.near.close()
        self.far.close()

    def carry(self):
        peer = None
        while not self.ended.is_set():
            for end in select.select([self.near, self.far], [], [], 0.05)[0]:
                packet, sender = end.recvfrom(65536)
                if end is self.near:
                    peer = sender
                self.longest = max(self.longest, len(packet))
                if self.chance.random() < self.loss:
                    self.lost += 1
                    continue
                self.carried += 1
                if end is self.near:
                    self.far.send(packet)
                elif peer:
                    self.near.sendto(packet, peer)


def test_reliability_repairs_a_lossy_link(make_router, content):
    near, far = make_router(name="near"), make_router(name="far")
    with LossyLink(far.udp, loss=0) as link, published(far, "/far/object", content):
        here = near.json("face", "create", link.uri, "--persistency", "permanent")["face_id"]
        near.namehop("route", "add", "/far", here)
        # The first datagram creates the face at the far end.
        near.namehop("ping", "/far/nobody", "--count", "1", "--timeout", "50ms", check=False)
        there = face_to(far, link.far_uri)["face_id"]
        for router, face in [(far, there), (near, here)]:
            router.namehop("face", "update", face, "--mtu", "1400", "--reliability", "on")
            assert router.json("face", "show", face)["reliability"]
        link.loss = 0.1
        arguments = ["--json", "--congestion", "fixed", "--window", "16", "--lifetime", "500ms"]
        result = near.namehop("cat", "/far/object", *arguments, text=False)
        assert same(result.stdout, content)
        assert link.lost > 50 and link.longest <= 1400
    # A segment is six fragments. Without reliability every second segment would be lost and requested again by `cat`.
    statistics = json.loads(result.stderr)
    assert statistics["segments"] == 125 and statistics["retransmissions"] < 40, statistics


def test_ndnts_puts_fragments_together(make_router, clients, content, tmp_path):
    router = make_router(start=False)
    router.extra = f'[faces.udp]\nlisten = ["127.0.0.1:{router.udp}"]\nmtu = 1400\n'
    router.start()
    clients.start("ndnts", "serve", router.unix_uri, "/far/object", content)
    got = tmp_path / "got.bin"
    clients.run("ndnts", "fetch", router.udp_uri, "/far/object", got)
    assert same(got.read_bytes(), content)


class NamespaceRouter(Router):
    """A router in its own network namespace."""

    def __init__(self, folder, namespace, extra):
        super().__init__(folder, extra, namespace)
        self.namespace = namespace
        self.prefix = ["ip", "netns", "exec", namespace]


def connect_neighbours(names):
    """Joins two network namespaces by one Ethernet."""
    ip("link", "add", "lan", "netns", names[0], "type", "veth", "peer", "name", "lan", "netns", names[1])
    for index, namespace in enumerate(names):
        ip("-n", namespace, "address", "add", f"192.0.2.{index + 1}/24", "dev", "lan")
        ip("-n", namespace, "link", "set", "lan", "addrgenmode", "none")
        ip("-n", namespace, "address", "add", f"fe80::{index + 1}/64", "dev", "lan", "nodad")
        ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", namespace, "link", "set", "lan", "up")


@pytest.fixture
def neighbours(tmp_path):
    """Two routers, each in a network namespace, joined by one Ethernet."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    names = [f"namehop-{os.getpid()}-{end}" for end in "ab"]
    routers = []
    try:
        try:
            for namespace in names:
                ip("netns", "add", namespace)
            connect_neighbours(names)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"cannot make network namespaces: {error}")
        for namespace in names:
            routers.append(NamespaceRouter(tmp_path, namespace, '[faces.multicast]\ninterfaces = ["lan"]\n').start())
        yield routers
        for router in routers:
            router.stop()
    finally:
        for router in routers:
            if router.process.poll() is None:
                router.kill()
        for namespace in names:
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)


@pytest.mark.parametrize("group", ["udp4://224.0.23.170:56363", "udp6://[ff02::1234%lan]:56363"])
def test_multicast_between_two_computers(neighbours, content, group):
    here, there = neighbours
    listed = here.json("face", "list")
    (face,) = [face for face in listed if face["remote_uri"] == group] or pytest.fail(f"no {group}: {[f['remote_uri'] for f in listed]}")
    assert (face["scope"], face["persistency"], face["link_type"]) == ("non-local", "permanent", "multi-access")
    here.namehop("route", "add", "/group", face["face_id"])
    with published(there, "/group/object", content):
        assert same(here.namehop("cat", "/group/object", text=False).stdout, content)
    # Packets used the group's face, and none looped back to its sender.
    face = here.json("face", "show", face["face_id"])
    assert face["out_interests"] >= 125 and face["in_data"] >= 125 and face["in_interests"] == 0


@pytest.mark.parametrize("group", ["udp4://224.0.23.170:56363", "udp6://[ff02::1234%lan]:56363"])
def test_multicast_survives_its_interface(neighbours, content, group):
    here, there = neighbours
    (number,) = [face["face_id"] for face in here.json("face", "list") if face["remote_uri"] == group]
    here.namehop("route", "add", "/group", number)
    ip("-n", here.namespace, "link", "delete", "lan")
    wait_until(lambda: not here.json("face", "show", number)["is_up"], what="the face is down")
    refused = here.namehop("ping", "/group/object", "--count", "1", "--json", check=False)
    assert json.loads(refused.stdout)["nacks"] == 1
    connect_neighbours([here.namespace, there.namespace])
    with published(there, "/group/object", content):
        fetched = wait_until(
            lambda: here.namehop("cat", "/group/object", text=False, check=False).stdout, what="the group is joined again"
        )
    assert same(fetched, content)
    face = here.json("face", "show", number)
    assert face["in_data"] >= 125, "the same face, with its route"


@contextmanager
def asking(peer):
    """Sends Interests from a peer all the time, so that its face does not become idle."""
    stop = threading.Event()

    def ask():
        while not stop.wait(0.1):
            peer.send(interest("/nobody", nonce=os.urandom(4)))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_idle_faces_close_and_subscribers_are_told(make_router, clients):
    router = make_router(start=False)
    router.extra = f'[faces.udp]\nlisten = ["127.0.0.1:{router.udp}"]\nidle_timeout_s = 1\n'
    router.start()
    kept = router.json("face", "create", "udp4://127.0.0.1:9")["face_id"]
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(PATIENCE)
    peer.connect(("127.0.0.1", router.udp))
    uri = f"udp4://127.0.0.1:{peer.getsockname()[1]}"
    clients.start("python", "events", router.unix_uri, uri, "DESTROYED")
    with asking(peer):
        face = face_to(router, uri)
        assert face["expiration_ms"] <= 2000
        router.namehop("route", "add", "/peer", face["face_id"])
    seen = [json.loads(line) for line in clients.running[-1].stdout]
    assert [event["kind"] for event in seen if event["uri"] == uri] == ["CREATED", "DESTROYED"]
    assert {event["local_uri"] for event in seen if event["uri"] == uri} == {router.udp_uri}
    assert {event["scope"] for event in seen if event["uri"] == uri} == {"NON_LOCAL"}
    sequences = [event["sequence"] for event in seen]
    assert sequences == list(range(sequences[0], sequences[0] + len(seen))), "no event is missing"
    faces = {face["remote_uri"]: face["face_id"] for face in router.json("face", "list")}
    assert uri not in faces and kept in faces.values(), "faces that were created by command stay"
    assert not any(route["prefix"] == "/peer" for route in router.json("route", "list"))


def test_subscribers_hear_of_a_link_that_goes_down_and_up(make_router, clients):
    near, far = make_router(name="near"), make_router(name="far")
    clients.start("python", "events", near.unix_uri, far.tcp_uri, "UP")
    # A permanent face connects in the background and would cause additional DOWN and UP events.
    near.namehop("face", "create", far.tcp_uri, "--persistency", "persistent")
    far.kill()
    far.start()
    seen = [json.loads(line) for line in clients.running[-1].stdout]
    kinds = [event["kind"] for event in seen if event["uri"] == far.tcp_uri]
    assert kinds == ["CREATED", "DOWN", "UP"], kinds


def enable_local_fields(connection, enabled=True):
    """Enables local fields on the application's own face."""
    command = make_command("faces", "update", flags=int(enabled), mask=1)
    connection.sendall(bytes(make_interest(command, InterestParam(can_be_prefix=False, lifetime=60_000))))
    _, answer, rest = read_element(connection)
    assert not rest and b"\x66\x01\xc8" in answer, answer  # StatusCode 200


def fields(packet):
    """Returns the header fields of an NDNLPv2 packet, or {} for a bare packet."""
    kind, at = read_number(packet, 0)
    if kind != 0x64:
        return {}
    _, at = read_number(packet, at)
    found = {}
    while at < len(packet):
        kind, at = read_number(packet, at)
        length, at = read_number(packet, at)
        found[kind] = packet[at : at + length]
        at += length
    return found


def with_next_hop(payload, face):
    return tlv(0x64, number(NEXT_HOP_FACE_ID) + number(2) + face.to_bytes(2, "big") + tlv(0x50, payload))


def test_local_fields_tell_where_packets_came_from(router):
    producer, producer_face = connect_application(router)
    consumer, consumer_face = connect_application(router)
    router.namehop("route", "add", "/fields", producer_face)

    def ask(uri):
        consumer.sendall(interest(uri, nonce=os.urandom(4)))
        _, asked, _ = read_element(producer)
        producer.sendall(data(uri))
        _, answer, _ = read_element(consumer)
        return fields(asked), fields(answer)

    asked, answer = ask("/fields/off")
    assert INCOMING_FACE_ID not in asked and INCOMING_FACE_ID not in answer
    enable_local_fields(producer)
    enable_local_fields(consumer)
    assert router.json("face", "show", producer_face)["local_fields"]
    asked, answer = ask("/fields/on")
    assert int.from_bytes(asked[INCOMING_FACE_ID], "big") == consumer_face
    assert int.from_bytes(answer[INCOMING_FACE_ID], "big") == producer_face
    consumer.sendall(interest("/fields/on", nonce=os.urandom(4)))
    _, cached, _ = read_element(consumer)
    assert int.from_bytes(fields(cached)[INCOMING_FACE_ID], "big") == 254, "the Content Store"
    enable_local_fields(producer, False)
    asked, answer = ask("/fields/off-again")
    assert INCOMING_FACE_ID not in asked and INCOMING_FACE_ID in answer


def test_the_chosen_next_hop_is_obeyed(router):
    """NextHopFaceId takes precedence over the FIB, but only from faces with local fields enabled."""
    first, first_face = connect_application(router)
    second, second_face = connect_application(router)
    consumer, _ = connect_application(router)
    router.namehop("route", "add", "/choice", first_face)

    def arrives_at(uri, next_hop, wait=PATIENCE):
        consumer.sendall(with_next_hop(interest(uri, nonce=os.urandom(4)), next_hop))
        (reached,) = select.select([first, second, consumer], [], [], wait)[0] or [None]
        if reached:
            _, packet, _ = read_element(reached)
            assert name(uri) in packet
        return reached

    assert arrives_at("/choice/disabled", second_face, wait=0.3) is None
    enable_local_fields(consumer)
    assert arrives_at("/choice/second", second_face) is second
    assert arrives_at("/choice/first", first_face) is first
    # A prefix without any route.
    assert arrives_at("/unrouted", second_face) is second
    # A nonexistent face: the Interest is dropped.
    assert arrives_at("/choice/nowhere", 60000, wait=0.3) is None
    # Data from the chosen next hop reaches the consumer.
    second.sendall(data("/unrouted", b"chosen"))
    _, answer, _ = read_element(consumer)
    assert b"chosen" in answer


def test_a_udp_peer_can_neither_have_local_fields_nor_choose_next_hops(router):
    producer, producer_face = connect_application(router)
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(PATIENCE)
    peer.connect(("127.0.0.1", router.udp))
    peer.send(interest("/nobody"))
    peer.recv(9000)
    face = face_to(router, f"udp4://127.0.0.1:{peer.getsockname()[1]}")["face_id"]
    refused = router.namehop("face", "update", face, "--local-fields", "on", check=False)
    assert refused.returncode == 1, refused.stdout
    peer.send(with_next_hop(interest("/unrouted/by/peer", nonce=b"abcd"), producer_face))
    producer.settimeout(0.3)
    with pytest.raises(TimeoutError):
        read_element(producer)
