"""The namehop commands, as an operator would type them, against a running router."""

import json
import os
import re
import socket
import subprocess
import urllib.request

import pytest
from applications import connect_application, serving, wait_for_route
from conftest import PATIENCE, PROGRAM, free_port, let_others_enter, run_namehop, wait_until
from packets import data, data_of, interest, read_element, tlv


def test_the_first_minutes(router, tmp_path):
    """The quick start of the README: put, cat, ping, serve, status."""
    source = tmp_path / "hello.txt"
    source.write_bytes(os.urandom(300_000))
    with open(source, "rb") as stream:
        publisher = router.spawn("put", "/hello/file", stdin=stream)
    try:
        wait_for_route(router, "/hello/file")
        fetched = router.namehop("cat", "/hello/file", text=False).stdout
        assert fetched == source.read_bytes()
    finally:
        publisher.terminate()
        publisher.wait(PATIENCE)

    with serving(router, "/hello/ping"):
        output = router.namehop("ping", "/hello/ping", "--count", "3", "--interval", "50ms").stdout
        assert "3 sent, 3 received" in output and " 0.0% loss" in output, output
        assert "min/avg/max" in output
    assert "Namehop" in router.namehop("status").stdout


def test_faces_routes_strategies_and_the_content_store(router):
    created = router.json("face", "create", "udp4://127.0.0.1:7001", "--persistency", "permanent")
    face = created["face_id"]
    assert face >= 256
    again = router.json("face", "create", "udp4://127.0.0.1:7001")
    assert (again["face_id"], again["created"]) == (face, False)
    shown = router.json("face", "show", face)
    assert shown["remote_uri"] == "udp4://127.0.0.1:7001" and shown["persistency"] == "permanent"
    router.namehop("face", "update", face, "--persistency", "persistent")
    assert router.json("face", "show", face)["persistency"] == "persistent"

    router.namehop("route", "add", "/net", face, "--cost", "5")
    router.namehop("route", "add", "/net/deeper", "udp4://127.0.0.1:7001")
    routes = {route["prefix"]: route for route in router.json("route", "list") if route["prefix"].startswith("/net")}
    assert routes["/net"]["cost"] == 5 and routes["/net/deeper"]["face_id"] == face
    fib = {entry["prefix"]: entry for entry in router.json("fib", "list")}
    assert fib["/net"]["nexthops"] == [{"face_id": face, "remote_uri": "udp4://127.0.0.1:7001", "cost": 5}]
    router.namehop("route", "remove", "/net/deeper", face)
    assert "/net/deeper" not in {route["prefix"] for route in router.json("route", "list")}

    router.namehop("strategy", "set", "/net", "asf")
    assert any(c["prefix"] == "/net" and "/asf/" in c["strategy"] for c in router.json("strategy", "list"))
    router.namehop("strategy", "unset", "/net")
    assert not any(c["prefix"] == "/net" for c in router.json("strategy", "list"))
    refused = router.namehop("strategy", "set", "/net", "asf/v=5/max-timeouts~none", check=False)
    assert refused.returncode == 1 and "max-timeouts" in refused.stderr

    router.namehop("cs", "config", "--capacity", "100", "--serve", "off")
    info = router.json("cs", "info")
    assert (info["capacity_packets"], info["admit"], info["serve"]) == (100, True, False)

    router.namehop("face", "destroy", face)
    assert face not in {entry["face_id"] for entry in router.json("face", "list")}
    assert "/net" not in {route["prefix"] for route in router.json("route", "list")}


def test_erasing_from_the_content_store(router):
    producer, face = connect_application(router)
    consumer = router.connect()
    router.namehop("route", "add", "/cached", face)
    for number in range(5):
        consumer.sendall(interest(f"/cached/{number}", nonce=bytes([9, 9, 9, number])))
        read_element(producer)
        producer.sendall(data(f"/cached/{number}", b"x" * 100, freshness=10000))
        read_element(consumer)
    assert router.json("cs", "info")["entries"] >= 5
    assert [router.json("cs", "erase", "/cached")["erased"] for _ in range(2)] == [5, 0]


def test_without_a_router_commands_say_what_to_do(tmp_path):
    result = run_namehop("status", transport=f"unix://{tmp_path}/none.sock", check=False)
    assert result.returncode == 3
    assert "namehop run" in result.stderr and "none.sock" in result.stderr


def test_help_and_usage():
    assert "run" in run_namehop("--help").stdout
    for command in ["run", "status", "face create", "route add", "fib list", "strategy set", "cs erase", "ping", "serve", "put", "cat", "config check", "bench sockets", "traffic relay"]:
        text = run_namehop(*command.split(), "--help").stdout
        assert "Usage:" in text and len(text) > 200, command
    assert run_namehop("face", "creat", check=False).returncode == 2


def test_configuration_check_and_show(tmp_path):
    good = tmp_path / "good.toml"
    good.write_text('[content_store]\ncapacity_packets = 5\n')
    assert run_namehop("config", "check", good).returncode == 0
    assert "capacity_packets = 5" in run_namehop("config", "show", good).stdout
    everything = tmp_path / "everything.toml"
    everything.write_text(run_namehop("config", "show").stdout)
    run_namehop("config", "check", everything)
    bad = tmp_path / "bad.toml"
    bad.write_text('\n[content_store]\ncapacity = 5\n')
    result = run_namehop("config", "check", bad, check=False)
    assert result.returncode == 1
    assert f"{bad}:3:1" in result.stderr and "capacity_packets" in result.stderr
    result = run_namehop("run", "--config", bad, check=False)
    assert result.returncode != 0 and f"{bad}:3:1" in result.stderr


def test_metrics(router, make_router):
    # The socket exists slightly before the other listeners.
    router.namehop("status")
    text = urllib.request.urlopen(f"http://127.0.0.1:{router.metrics}/metrics").read().decode()
    assert re.search(r"^namehop_\w*interests\w*\{?.* \d+$", text, re.M), text[:500]
    assert "# HELP" in text
    silent = make_router("[metrics]\nenabled = false\n")
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{silent.metrics}/metrics")


def test_status_names_the_reason_of_a_drop(router):
    connection = router.connect()
    connection.sendall(interest("/x", hop_limit=0))
    wait_until(lambda: "hop-limit" in json.dumps(router.json("status")["drops"]), what="the drop is counted")


def test_it_says_where_it_listens(router):
    # The router logs its addresses only after it listens.
    wait_until(lambda: f"NDN_CLIENT_TRANSPORT=unix://{router.socket}" in router.log.read_text(), what="the router says where")
    log = router.log.read_text()
    for port in (router.tcp, router.udp, router.ws):
        assert str(port) in log


@pytest.mark.parametrize("configured", [None, 3])
def test_it_says_for_how_many_packets_memory_is_fetched(make_router, configured):
    router = make_router(f"[forwarding]\nlookahead = {configured}\n" if configured else "")
    said = wait_until(lambda: re.search(r"prefetching memory for (\d+) packets at a time(.*)", router.log.read_text()), what="the router says it")
    packets, reason = int(said[1]), said[2]
    if configured:
        assert packets == configured and "as configured" in reason
    else:
        assert 1 <= packets <= 64 and (re.search(r"a cache line takes \d+ ns", reason) or "could not be measured" in reason)


def test_the_default_socket_without_privileges(tmp_path):
    """A router of an unprivileged user without a configured socket uses $XDG_RUNTIME_DIR and logs the path."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    home = tmp_path / "home"
    home.mkdir()
    let_others_enter(tmp_path)
    os.chown(home, 65534, 65534)
    config = home / "ports.toml"
    config.write_text(
        f'[faces.tcp]\nlisten = []\n[faces.websocket]\nlisten = []\n[faces.udp]\nlisten = ["127.0.0.1:{free_port(socket.SOCK_DGRAM)}"]\n'
        '[metrics]\nenabled = false\n'
    )
    environment = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PATH": os.environ["PATH"]}
    program = home / "namehop"
    program.write_bytes(open(PROGRAM, "rb").read())
    program.chmod(0o755)
    log = home / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen([program, "run", "--config", config], user=65534, group=65534, extra_groups=[], env=environment, stdout=output, stderr=output, cwd=home)
    try:
        wait_until(lambda: (home / "nfd/nfd.sock").exists(), what=f"socket, see {log}")
        told = f"NDN_CLIENT_TRANSPORT=unix://{home}/nfd/nfd.sock"
        wait_until(lambda: told in log.read_text(), what=f"'{told}' in {log}")
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_ports_in_use_and_a_second_router(router, make_router, tmp_path):
    second = make_router(start=False)
    second.extra = f'[faces.unix]\npath = "{router.socket}"\n'
    second.write_config()
    result = run_namehop("run", "--config", second.config, check=False)
    assert result.returncode != 0 and str(router.socket) in result.stderr and "listening" in result.stderr, result.stderr
    second.extra = f'[faces.tcp]\nlisten = ["127.0.0.1:{router.tcp}"]\n'
    second.write_config()
    result = run_namehop("run", "--config", second.config, check=False)
    assert result.returncode != 0 and str(router.tcp) in result.stderr and "in use" in result.stderr, result.stderr
    assert router.json("status")


# First parts of objects, by their last name component: a byte offset and a marked number (conventions of 2014), and texts.
PARTS = [b"\xfb\x00", b"\xfe\x00", b"1", b"part0", b"off=0"]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_cat_of_an_object_with_an_unknown_numbering_fails(router, part):
    """The answer may be one of many parts, so it is not the object."""
    producer, face = connect_application(router)
    router.namehop("route", "add", "/parts", face)
    packet = data_of(tlv(8, b"parts") + tlv(8, part), b"x" * 1000)
    fetching = router.spawn("cat", "/parts", "--discovery", "prefix", "--lifetime", "1s", "--attempts", "2")
    read_element(producer)
    producer.sendall(packet)
    fetched, message = fetching.communicate(timeout=PATIENCE)
    assert fetching.returncode == 1 and fetched == b"", message
    assert b"may be one segment of an object with an unknown segment numbering" in message
