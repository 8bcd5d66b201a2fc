"""Connections through a proxy on the router's host do not count as local applications, over WebSocket, TCP and HTTP."""

import asyncio
import base64
import os
import socket
import threading
from contextlib import contextmanager

import pytest
from conftest import PATIENCE, wait_until
from packets import command, interest, read_element, register
from test_http_api import ask, token_of

STATUS = interest("/localhost/nfd/status/general", can_be_prefix=True, must_be_fresh=True)
# Header fields that proxies set: nginx in its usual configuration, Caddy, HAProxy with `Forwarded`, a proxy with `Via`, and one that only
# sets Host.
SHOWN = {
    "nginx": {"X-Real-IP": "203.0.113.7", "X-Forwarded-Proto": "https"},
    "caddy": {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "router.example", "Host": "router.example"},
    "rfc7239": {"Forwarded": "for=203.0.113.7;proto=https"},
    "via": {"Via": "1.1 proxy"},
    "host": {"Host": "router.example"},
}


@contextmanager
def reverse_proxy(port, fields):
    """Runs a reverse proxy in front of a port of the router, yields its port, and sets these fields in each request header."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    ports = []

    async def copy(reader, writer):
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def serve(reader, writer):
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", port)
        if fields is not None:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
            kept = [line for line in lines if line.split(":")[0].title() not in fields]
            added = [f"{field}: {value}" for field, value in fields.items()]
            upstream.write("\r\n".join([*kept, *added, "", ""]).encode())
        await asyncio.gather(copy(reader, upstream), copy(upstream_reader, writer))

    async def run():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()

    def work():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(run())
        loop.run_forever()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(PATIENCE)
    yield ports[0]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


class WebSocket:
    """A client that sends and receives packets of less than 64 KiB as binary messages."""

    def __init__(self, port, **fields):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        header = {
            "Host": f"127.0.0.1:{port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            **fields,
        }
        lines = "".join(f"{field}: {value}\r\n" for field, value in header.items())
        self.socket.sendall(f"GET / HTTP/1.1\r\n{lines}\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.socket.recv(1)
        self.status = int(answer.split()[1])

    def send(self, packet):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(packet))
        self.socket.sendall(b"\x82\xfe" + len(packet).to_bytes(2, "big") + mask + masked)

    def receive(self):
        def exactly(count):
            got = b""
            while len(got) < count:
                piece = self.socket.recv(count - len(got))
                assert piece, "closed by the router"
                got += piece
            return got

        while True:
            kind, length = exactly(2)
            length = int.from_bytes(exactly(2), "big") if length == 126 else length
            message = exactly(length)
            if kind == 0x82:
                return message

    def close(self):
        self.socket.close()


class Tcp:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)

    def send(self, packet):
        self.socket.sendall(packet)

    def receive(self):
        return read_element(self.socket)[1]

    def close(self):
        self.socket.close()


def is_an_application(router, client):
    """True if the router treats a peer as an application, both in its list of faces and in what the peer may do."""
    client.send(command("rib", "register", register("/taken", 0)))
    client.send(STATUS)
    # The router answers this with a Nack after the other packets, so the test need not wait for a timeout.
    client.send(interest("/nobody/here"))
    answers = [client.receive()]
    (face,) = [face for face in router.json("face", "list") if face["remote_uri"].startswith(("wsclient", "tcp"))]
    is_local = face["scope"] == "local"
    if is_local:
        answers += [client.receive(), client.receive()]
    assert any(b"localhost" in answer for answer in answers) == is_local, answers
    routes = [route["face_id"] for route in router.json("route", "list") if route["prefix"] == "/taken"]
    assert routes == ([face["face_id"]] if is_local else [])
    client.close()
    wait_until(lambda: all(other["face_id"] != face["face_id"] for other in router.json("face", "list")), what="closed")
    return is_local


@pytest.fixture
def configured(make_router):
    """Makes a router whose listeners have these additional settings."""

    def make(tcp="", websocket="", api=""):
        router = make_router(start=False)
        router.extra = (
            f'[faces.tcp]\nlisten = ["127.0.0.1:{router.tcp}"]\n{tcp}\n'
            f'[faces.websocket]\nlisten = ["127.0.0.1:{router.ws}"]\n{websocket}\n[api]\n{api}\n'
        )
        return router.start()

    return make


@pytest.mark.parametrize("fields", SHOWN.values(), ids=SHOWN)
def test_websocket_through_a_proxy_that_shows_itself_is_from_elsewhere(configured, fields):
    # This holds even if the operator has configured loopback peers as applications.
    router = configured(websocket="local = true")
    with reverse_proxy(router.ws, fields) as port:
        client = WebSocket(port, Host=f"127.0.0.1:{router.ws}")
        assert client.status == 101
        assert not is_an_application(router, client)
    assert is_an_application(router, WebSocket(router.ws))


def test_local_false_covers_proxies_that_show_nothing(configured):
    router = configured(tcp="local = false", websocket="local = false")
    with reverse_proxy(router.ws, {"Host": "localhost"}) as port:
        assert not is_an_application(router, WebSocket(port))
    assert not is_an_application(router, WebSocket(router.ws))
    with reverse_proxy(router.tcp, None) as port:
        assert not is_an_application(router, Tcp(port))
    assert not is_an_application(router, Tcp(router.tcp))


def test_connections_that_the_router_makes_follow_the_same_setting(configured, make_router):
    peer = make_router(name="peer")
    for setting, scope in [("local = true", "local"), ("local = false", "non-local")]:
        router = configured(tcp=setting, websocket=setting)
        for uri in (peer.tcp_uri, peer.ws_uri):
            router.namehop("face", "create", uri)
            (face,) = [face for face in router.json("face", "list") if face["remote_uri"] == uri]
            assert face["scope"] == scope, uri


@pytest.mark.parametrize(
    "origins, is_local", [('["https://app.example"]', False), ('["*"]', False), ('["http://localhost:3000"]', True), ("[]", True)]
)
def test_pages_of_other_sites_make_websocket_peers_from_elsewhere(configured, origins, is_local):
    router = configured(websocket=f"allowed_origins = {origins}")
    page = {"Origin": "https://app.example"} if not is_local else {}
    assert is_an_application(router, WebSocket(router.ws, **page)) == is_local


@pytest.mark.parametrize("header", [b"PROXY TCP4 203.0.113.7 192.0.2.1 5000 6363\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12)])
def test_the_proxy_protocol_ends_a_connection(router, header):
    for port in (router.tcp, router.ws):
        client = Tcp(port)
        client.send(header + command("rib", "register", register("/taken", 0)))
        try:
            answer = client.socket.recv(1000)
        except ConnectionResetError:
            answer = b""
        assert b"localhost" not in answer
        client.close()
    assert not [route for route in router.json("route", "list") if route["prefix"] == "/taken"]


@pytest.mark.parametrize("fields", SHOWN.values(), ids=SHOWN)
def test_the_api_asks_proxies_for_the_token(make_router, fields):
    router = make_router(start=False)
    router.extra = f'[metrics]\nlisten = "127.0.0.1:{router.metrics}"\nallowed_hosts = ["router.example"]\n'
    router.start()
    assert ask(router, "GET", "/faces")[0] == 200
    port, token = router.metrics, token_of(router)
    with reverse_proxy(port, fields) as router.metrics:
        assert ask(router, "GET", "/faces")[0] == 401
    with reverse_proxy(port, fields) as router.metrics:
        assert ask(router, "GET", "/faces", token=token)[0] == 200


def test_the_api_asks_for_the_token_where_a_proxy_shows_nothing(configured):
    router = configured(api="local = false")
    assert ask(router, "GET", "/faces")[0] == 401
    assert ask(router, "GET", "/faces", token=token_of(router))[0] == 200
