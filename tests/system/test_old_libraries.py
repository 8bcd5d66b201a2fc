"""Unmodified libraries that do not understand PIT tokens, and how peers show that they do."""

import itertools
import socket

import pytest
from conftest import PATIENCE, wait_until
from packets import KNOWS_PIT_TOKENS_ASKS, KNOWS_PIT_TOKENS_TELLS, data_of, elements, interest, read_element
from test_trace import packets_of, start_trace

DATA, LP_PACKET, PIT_TOKEN = 6, 0x64, 0x62
LIBRARIES = ["pyndn", "ndnjs"]
# Transport of the producer, transport of the consumer, and number of workers.
PATHS = [("unix", "tcp", 1), ("tcp", "unix", 1), ("unix", "unix", 2), ("tcp", "tcp", 4)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("producer, consumer, workers", PATHS)
def test_an_old_library_publishes_and_consumes(router, clients, library, producer, consumer):
    assert clients.start(library, "serve", router.uri(producer), "/old/things")["registered"]
    for number in range(3):
        # All Data must come from the producer, which the first Interest might have crashed.
        got = clients.run(library, "consume", router.uri(consumer), f"/old/things/{number}")
        assert got == [{"result": "data", "content": "here"}]


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_old_library_meets_an_application_of_today(router, clients, library):
    assert clients.start(library, "serve", router.unix_uri, "/old/things")["registered"]
    assert clients.run("python", "consume", router.unix_uri, "/old/things/1")[0]["result"] == "data"
    assert clients.run("ndnts", "consume", router.tcp_uri, "/old/things/2")[0]["result"] == "data"
    assert clients.run(library, "consume", router.tcp_uri, "/nobody/here") == [{"result": "nack", "reason": 150}]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_token_ends_an_old_library(make_router, clients, library):
    """An old library ends when it receives a PIT token. This shows that the tests above can fail."""
    router = make_router('[faces]\npit_tokens = "on"\n')
    assert clients.start(library, "serve", router.unix_uri, "/old/things")["registered"]
    (got,) = clients.run(library, "consume", router.unix_uri, "/old/things/1", 2000)
    assert got["result"] in ("timeout", "nack")


class DatagramPeer:
    """A UDP peer that sends and receives single frames."""

    def __init__(self, router):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        self.router = ("127.0.0.1", router.udp)
        self.uri = f"udp4://127.0.0.1:{self.socket.getsockname()[1]}"

    def send(self, frame):
        self.socket.sendto(frame, self.router)

    def receive(self):
        return self.socket.recv(9000)

    def receive_interest(self):
        """Returns the next frame that is not a PIT token query."""
        return next(frame for frame in iter(self.receive, b"") if frame != KNOWS_PIT_TOKENS_ASKS)


def token_on(frame):
    """Returns the PIT token of an Interest, or None."""
    outer = elements(frame)
    return elements(outer[LP_PACKET]).get(PIT_TOKEN) if LP_PACKET in outer else None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_peer_gets_tokens_when_it_has_shown_that_it_knows_them(router, workers):
    peer = DatagramPeer(router)
    face = router.json("face", "create", peer.uri)["face_id"]
    router.namehop("route", "add", "/shown", face)
    with router.connect() as consumer:
        consumer.sendall(interest("/shown/1"))
        assert peer.receive() == KNOWS_PIT_TOKENS_ASKS
        assert token_on(peer.receive_interest()) is None
        peer.send(KNOWS_PIT_TOKENS_TELLS)
        peer.send(data_of(b"\x08\x05shown\x08\x011"))
        assert read_element(consumer)[0] == DATA
        numbers = itertools.count(2)

        def next_token():
            consumer.sendall(interest(f"/shown/{next(numbers)}"))
            return token_on(peer.receive_interest())

        # The worker that learns this may not be the one that receives the Data, so the token may come later.
        wait_until(next_token, what="a token")
        # An explicit setting of the operator takes precedence.
        for mode, expected in [("off", False), ("on", True), ("auto", True)]:
            router.namehop("face", "update", face, "--pit-tokens", mode)
            assert router.json("face", "show", face)["pit_tokens"] == mode
            assert (next_token() is not None) == expected, mode


def test_a_question_of_a_peer_is_answered(router):
    peer = DatagramPeer(router)
    for _ in range(3):
        peer.send(KNOWS_PIT_TOKENS_ASKS)
        assert peer.receive() == KNOWS_PIT_TOKENS_TELLS


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_two_routers_find_out_about_each_other(make_router, transport):
    near, far = make_router(), make_router()
    near.namehop("route", "add", "/far", far.uri(transport))
    serving = far.spawn("serve", "/far/ping")
    try:
        wait_until(lambda: near.namehop("ping", "/far/ping", "-c", "1", check=False).returncode == 0, what="an answer")
        for router in near, far:
            trace = start_trace(router, "--name", "/far", "--count", "1000", "--seconds", "2")
            near.namehop("ping", "/far/ping", "-c", "2", "-i", "10ms")
            steps = [step["text"] for packet in packets_of(trace) for step in packet["steps"]]
            found = [text for text in steps if "found by" in text]
            assert found and all("found by PIT token" in text for text in found), steps
    finally:
        serving.kill()
        serving.wait()


@pytest.mark.parametrize("workers", [1])
def test_what_a_peer_has_shown_is_forgotten_with_the_connection(router, workers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        uri = f"tcp4://127.0.0.1:{server.getsockname()[1]}"
        face = router.json("face", "create", uri, "--persistency", "permanent")["face_id"]
        router.namehop("route", "add", "/stream", face)
        for connection in range(2):
            peer, _ = server.accept()
            with peer:
                peer.settimeout(PATIENCE)
                wait_until(lambda: router.json("face", "show", face)["is_up"], what="the link is up")
                consumer = router.connect()
                consumer.sendall(interest(f"/stream/{connection}"))
                _, frame, rest = read_element(peer)
                assert frame == KNOWS_PIT_TOKENS_ASKS
                _, frame, rest = read_element(peer, rest)
                assert token_on(frame) is None
                peer.sendall(KNOWS_PIT_TOKENS_TELLS + data_of(b"\x08\x06stream\x08\x01%d" % connection))
                assert read_element(consumer)[0] == DATA
                consumer.sendall(interest(f"/stream/again/{connection}"))
                assert token_on(read_element(peer, rest)[1]) is not None
                consumer.close()


def test_modes_are_kept(make_router):
    router = make_router('[[face]]\nuri = "udp4://127.0.0.1:9"\npit_tokens = "on"\n')
    face = router.json("face", "create", "udp4://127.0.0.1:7", "--persistency", "permanent", "--pit-tokens", "off")
    assert face["pit_tokens"] == "off"

    def modes():
        return {face["remote_uri"]: face["pit_tokens"] for face in router.json("face", "list")}

    router.stop()
    router.start()
    wait_until(lambda: {"udp4://127.0.0.1:7", "udp4://127.0.0.1:9"} <= modes().keys(), what="the faces are back")
    assert (modes()["udp4://127.0.0.1:9"], modes()["udp4://127.0.0.1:7"]) == ("on", "off")
    assert router.json("face", "create", "udp4://127.0.0.1:8")["pit_tokens"] == "auto"
