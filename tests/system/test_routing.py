"""Routing daemons and gateways: which prefixes the router announces to them.

A program on python-ndn stands in for a daemon. docs/routing.md describes the answers of real daemons and was tried with one.
"""

import json
import re
import threading
import time
import urllib.request

import pytest
from conftest import PATIENCE, run_namehop, wait_until

CLIENT = ("--origin", "client")


class Daemon:
    """A stand-in for a routing daemon, and the commands that it has received."""

    def __init__(self, clients, router, *arguments):
        self.got = []
        line = clients.start("python", "routing_daemon", router.unix_uri, *arguments)
        self.process = clients.running[-1]
        # Commands may arrive before the response to the daemon's registration.
        while line != {"registered": 200}:
            self.got.append(line)
            line = json.loads(self.process.stdout.readline())
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.got.append(json.loads(line))

    @property
    def words(self):
        return [f"{command['verb']} {command['name']}" for command in self.got]

    def wait_for(self, *words):
        wait_until(lambda: sorted(self.words) == sorted(words), what=f"{words} and no more, instead of {self.words}")

    def knows(self):
        """Returns the prefixes that are registered at present."""
        known = {}
        for command in self.got:
            known[command["name"]] = command["verb"] == "register"
        return {name for name, is_known in known.items() if is_known}

    def end(self):
        self.process.kill()
        self.process.wait()


def metrics_text(router):
    return urllib.request.urlopen(f"http://127.0.0.1:{router.metrics}/metrics", timeout=PATIENCE).read().decode()


def metric(router, name, **labels):
    labels = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return float(re.search(rf"^namehop_readvertise_{name}{{{labels}}} (\S+)$", metrics_text(router), re.M).group(1))


def peer_face(router, port=9):
    return router.json("face", "create", f"udp4://127.0.0.1:{port}")["face_id"]


def test_a_daemon_is_told_of_client_routes_and_of_their_end(router, clients):
    face = peer_face(router)
    router.namehop("route", "add", "/before", face, *CLIENT, "--cost", 5)
    router.namehop("route", "add", "/not/for/others", face)
    daemon = Daemon(clients, router)
    daemon.wait_for("register /before")
    (command,) = daemon.got
    assert command == {
        "components": 6, "module": "rib", "verb": "register", "name": "/before", "cost": 5, "origin": None, "signature": 0, "timed": True,
    }
    router.namehop("route", "add", "/after", face, *CLIENT)
    router.namehop("route", "add", "/localhop/mine", face, *CLIENT)
    daemon.wait_for("register /before", "register /after")
    router.namehop("route", "remove", "/before", face, *CLIENT)
    daemon.wait_for("register /before", "register /after", "unregister /before")
    router.namehop("face", "destroy", face)
    wait_until(lambda: daemon.knows() == set(), what="withdrawn with the face")
    assert metric(router, "commands_total", destination="daemon", result="announced") == 2
    wait_until(lambda: metric(router, "commands_total", destination="daemon", result="withdrawn") == 2, what="counted")


def test_a_daemon_that_begins_anew_is_told_everything(router, clients):
    face = peer_face(router)
    for prefix in ("/a", "/b"):
        router.namehop("route", "add", prefix, face, *CLIENT)
    daemon = Daemon(clients, router)
    daemon.wait_for("register /a", "register /b")
    daemon.end()
    wait_until(lambda: metric(router, "available", destination="daemon") == 0, what="the end is noticed")
    router.namehop("route", "remove", "/a", face, *CLIENT)
    router.namehop("route", "add", "/c", face, *CLIENT)
    daemon = Daemon(clients, router)
    daemon.wait_for("register /b", "register /c")


def test_many_prefixes_are_told_and_churn_is_not(router, clients):
    """A prefix that is added and removed many times causes few commands."""
    face = peer_face(router)
    daemon = Daemon(clients, router)
    for number in range(30):
        router.namehop("route", "add", f"/many/{number}", face, *CLIENT)
    wait_until(lambda: len(daemon.knows()) == 30, what="all are known")
    before, start = len(daemon.got), time.monotonic()
    for _ in range(15):
        router.namehop("route", "add", "/churn", face, *CLIENT)
        router.namehop("route", "remove", "/churn", face, *CLIENT)
    router.namehop("route", "add", "/churn", face, *CLIENT)
    elapsed = time.monotonic() - start
    wait_until(lambda: "/churn" in daemon.knows(), what="the last word")
    assert len(daemon.got) - before <= 2 * (elapsed + 2)


def test_a_daemon_that_refuses_or_says_nothing_holds_up_nobody(router, clients):
    face = peer_face(router)
    router.namehop("route", "add", "/a", face, *CLIENT)
    daemon = Daemon(clients, router, 403)
    daemon.wait_for("register /a")
    wait_until(lambda: metric(router, "commands_total", destination="daemon", result="refused") == 1, what="counted")
    assert "403 as the test says" in router.log.read_text()
    (told,) = router.json("status")["readvertise"]
    assert (told["destination"], told["command_prefix"], told["is_available"]) == ("daemon", "/localhost/nlsr/rib", True)
    assert (told["announced_prefixes"], told["waiting_prefixes"], told["refused_prefixes"]) == (0, 0, 1)
    assert (told["last_error"]["prefix"], told["last_error"]["reason"]) == ("/a", "403 as the test says")
    text = router.namehop("status").stdout
    assert f"at face {told['face_ids'][0]}; prefixes: 0 announced, 0 waiting, 1 refused" in text
    assert re.search(r"^  last error +/a, .* ago: 403 as the test says$", text, re.M)
    daemon.end()
    wait_until(lambda: metric(router, "available", destination="daemon") == 0, what="the end is noticed")
    assert "none (no route for /localhost/nlsr/rib); prefixes: 1 waiting" in router.namehop("status").stdout
    silent = Daemon(clients, router, 0)
    silent.wait_for("register /a")
    router.namehop("route", "add", "/b", face, *CLIENT)
    wait_until(lambda: "register /b" in silent.words, what="the next is not held up")
    silent.end()
    # Pending Interests may also reach the new daemon, so it may receive a command twice.
    other = Daemon(clients, router)
    wait_until(lambda: other.knows() == {"/a", "/b"}, what="all are known")


def test_origins_are_a_setting(make_router, clients):
    router = make_router('[routing.daemon]\norigins = ["static"]\n')
    face = peer_face(router)
    router.namehop("route", "add", "/of/a/client", face, *CLIENT)
    router.namehop("route", "add", "/of/the/operator", face)
    Daemon(clients, router).wait_for("register /of/the/operator")


def test_commands_announce_their_prefix_when_told_to(router, clients):
    daemon = Daemon(clients, router)
    servers = [router.spawn("serve", "/quiet"), router.spawn("serve", "/loud", "--announce")]
    servers.append(router.spawn("put", "/louder", "--announce", "--file", __file__))
    wait_until(lambda: daemon.knows() == {"/loud", "/louder"}, what="announced")
    for server in servers:
        server.kill()
        server.wait()
    wait_until(lambda: daemon.knows() == set(), what="withdrawn")


def test_nothing_is_announced_when_that_is_off(make_router):
    router = make_router("[routing.daemon]\nenabled = false\n")
    router.namehop("status")
    assert "destination=" not in metrics_text(router)
    assert router.json("status")["readvertise"] == []


@pytest.fixture
def host_key(tmp_path):
    key, certificate = tmp_path / "host.key", tmp_path / "host.ndncert"
    run_namehop("key", "generate", "/site/host", "--key", key, "--certificate", certificate)
    return key, certificate


def with_key(host_key, **settings):
    key, certificate = host_key
    lines = "".join(f"{setting} = {value}\n" for setting, value in settings.items())
    return f'[routing.gateway]\nkey = "{key}"\ncertificate = "{certificate}"\n{lines}'


def routes(router, prefix):
    return [route for route in router.json("route", "list") if route["prefix"] == prefix]


def test_a_host_registers_its_identity_at_the_gateway(make_router, clients, host_key):
    gateway = make_router(f'[management.localhop]\nanchors = ["{host_key[1]}"]\n', name="gateway")
    host = make_router(with_key(host_key, refresh_s=2), name="host")
    server = host.spawn("serve", "/site/host/app")
    host.namehop("route", "add", "/localhop/nfd", gateway.udp_uri)
    (route,) = wait_until(lambda: routes(gateway, "/site/host"), what="registered")
    assert (route["origin"], route["cost"]) == ("client", 15)
    assert 0 < route["expires_ms"] <= 24_000
    # The route works: a consumer at the gateway reaches the application.
    assert gateway.namehop("ping", "/site/host/app", "-c", 1, check=False).returncode == 0
    wait_until(lambda: metric(host, "commands_total", destination="gateway", result="announced") >= 3, what="repeated")
    # A gateway that restarted is told again.
    gateway.stop()
    gateway.start()
    wait_until(lambda: routes(gateway, "/site/host"), what="registered again")
    server.kill()
    server.wait()
    wait_until(lambda: not routes(gateway, "/site/host"), what="withdrawn")


def test_a_gateway_that_does_not_trust_the_key_refuses(make_router, host_key, tmp_path):
    run_namehop("key", "generate", "/other", "--key", tmp_path / "o.key", "--certificate", tmp_path / "o.ndncert")
    gateway = make_router(f'[management.localhop]\nanchors = ["{tmp_path / "o.ndncert"}"]\n', name="gateway")
    host = make_router(with_key(host_key), name="host")
    host.namehop("route", "add", "/localhop/nfd", gateway.udp_uri)
    host.namehop("route", "add", "/site/host/x", peer_face(host), *CLIENT)
    wait_until(lambda: metric(host, "commands_total", destination="gateway", result="refused") == 1, what="refused")
    assert "403" in host.log.read_text()
    assert not routes(gateway, "/site/host")


def test_a_gateway_passes_its_hosts_on_to_its_routing_daemon(make_router, clients, host_key):
    gateway = make_router(f'[management.localhop]\nanchors = ["{host_key[1]}"]\n', name="gateway")
    daemon = Daemon(clients, gateway)
    host = make_router(with_key(host_key), name="host")
    host.namehop("route", "add", "/", gateway.udp_uri)
    host.namehop("route", "add", "/site/host/x", peer_face(host), *CLIENT)
    daemon.wait_for("register /site/host")
    assert daemon.got[0]["cost"] == 15
