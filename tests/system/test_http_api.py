"""The HTTP API of a running router: it offers everything that the namehop command does. Changes need the token."""

import http.client
import json
import os
import re
import socket
import stat
import subprocess

import pytest
from applications import connect_application, face_to, published, same
from conftest import PATIENCE, run_namehop, wait_until
from packets import data, interest, read_element
from test_strategies import SDK, compile_strategy

# Number of connections that read nothing, and the memory that they may cost together. The server keeps 32 of them, each with a page.
SLOW_READERS = 200
SLOW_READERS_MIB = 32
PREFIXES = 200_000
# Size limit of an object file.
MOST_OBJECT_BYTES = 65_536


def token_of(router):
    return (router.folder / "state.json.api-token").read_text().strip()


def ask(router, method, path, body=None, token=None, headers=None):
    """Returns the status and the answer, decoded from JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", router.metrics, timeout=PATIENCE)
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if isinstance(body, dict):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    connection.request(method, f"/api/v1{path}", body, headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text else None


def change(router, method, path, body=None, **options):
    """Sends a request that must succeed, and returns the answer."""
    status, answer = ask(router, method, path, body, token=token_of(router), **options)
    assert status in (200, 201, 204), answer
    return answer


def get(router, path):
    status, answer = ask(router, "GET", path)
    assert status == 200, answer
    return answer


def all_items(router, path):
    items, after = [], ""
    while True:
        page = get(router, f"{path}{after}")
        items += page["items"]
        if page["next"] is None:
            return items
        after = f"{'&' if '?' in path else '?'}after={page['next']}"


def test_data_comes_over_a_route_that_was_made_over_http(make_router, tmp_path):
    near, far = make_router(name="near"), make_router(name="far")
    source = tmp_path / "object.bin"
    source.write_bytes(os.urandom(200_000))
    face = change(near, "POST", "/faces", {"uri": far.udp_uri, "persistency": "permanent", "mtu_bytes": 1400})
    assert face["created"] and face["mtu_bytes"] == 1400
    number = face["face_id"]
    route = change(near, "PUT", "/routes", {"prefix": "/far", "face_id": number, "cost": 3})
    assert (route["origin"], route["flags"], route["cost"]) == ("static", "child-inherit", 3)
    with published(far, "/far/object", source):
        assert same(near.namehop("cat", "/far/object", text=False).stdout, source)
        # HTTP and the command show the same.
        by_http, by_command = get(near, f"/faces/{number}"), near.json("face", "show", number)
        assert by_http["in_data"] > 0 and by_http.keys() == by_command.keys()
        cache = get(near, "/cs")
        assert cache["entries"] > 20 and cache.keys() == near.json("cs", "info").keys()
        assert change(near, "POST", "/cs/erase", {"prefix": "/far"})["erased"] >= 20
        assert get(near, "/cs")["entries"] < cache["entries"] - 19
    in_order = lambda items: sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    for path, command in [("/routes", "route"), ("/strategies", "strategy"), ("/fib", "fib")]:
        assert in_order(all_items(near, path)) == in_order(near.json(command, "list")), path
    assert get(near, "/status").keys() == near.json("status").keys()
    # Changes made over HTTP survive a restart, and so does the token.
    token = token_of(near)
    near.stop()
    near.start()
    assert token_of(near) == token
    wait_until(lambda: [r for r in get(near, "/routes?prefix=/far")["items"] if r["cost"] == 3], what="the saved route")
    number = face_to(near, far.udp_uri)["face_id"]
    change(near, "DELETE", f"/routes?prefix=/far&face_id={number}")
    change(near, "DELETE", f"/faces/{number}")
    assert ask(near, "GET", f"/faces/{number}")[0] == 404
    assert "/far" not in {route["prefix"] for route in near.json("route", "list")}


def test_strategies_are_chosen_and_loaded(router, tmp_path):
    chosen = change(router, "PUT", "/strategies", {"prefix": "/s", "strategy": "multicast"})
    assert chosen in router.json("strategy", "list")
    status, refused = ask(router, "PUT", "/strategies", {"prefix": "/s", "strategy": "nonsense"}, token=token_of(router))
    assert (status, refused["error"]) == (404, "no such strategy")
    assert "/localhost/nfd/strategy/asf/v=5" in {strategy["strategy"] for strategy in get(router, "/strategies/available")}
    object_file = compile_strategy(tmp_path, SDK / "examples/hedge.c", "hedge").read_bytes()
    program = {"headers": {"Content-Type": "application/octet-stream"}}
    assert change(router, "POST", "/strategies/loaded?name=mine", object_file, **program) == {"name": "mine"}
    (mine,) = (strategy for strategy in get(router, "/strategies/available") if strategy["loaded"])
    assert "/mine/" in mine["strategy"] and mine["parameters"][0]["key"] == "patience" and mine["summary"], mine
    assert router.json("strategy", "list", "--loaded") == [mine]
    change(router, "PUT", "/strategies", {"prefix": "/s", "strategy": "mine"})
    assert ask(router, "DELETE", "/strategies/loaded/mine", token=token_of(router))[0] == 409
    change(router, "DELETE", "/strategies?prefix=/s")
    change(router, "DELETE", "/strategies/loaded/mine")
    assert router.json("strategy", "list", "--loaded") == []
    # An object file that is too long for a command, for example with debug information, fits into a request body. It survives a restart.
    large = object_file + bytes(MOST_OBJECT_BYTES - len(object_file))
    assert change(router, "POST", "/strategies/loaded?name=large", large, **program) == {"name": "large"}
    router.stop()
    router.start()
    assert [loaded["strategy"] for loaded in router.json("strategy", "list", "--loaded")] == ["/localhost/nfd/strategy/large/v=1"]
    status, refused = ask(router, "POST", "/strategies/loaded", large + b"x", token=token_of(router), **program)
    assert (status, "llvm-strip" in refused["hint"]) == (413, True)


def test_names_are_given_to_another_worker(make_router):
    router = make_router("[forwarding]\nworkers = 2\nsmall_buffers = 8192\nlarge_buffers = 2048\n")
    producer, face = connect_application(router)
    consumer, _ = connect_application(router)
    change(router, "PUT", "/routes", {"prefix": "/p", "face_id": face})
    statuses = []
    for worker in [1, 0]:
        status, answer = ask(router, "POST", "/ndt/move", {"name": "/p/q", "worker": worker}, token=token_of(router))
        statuses.append(status)
        assert status == 200 or "half a minute" in answer["error"]
        consumer.sendall(interest(f"/p/q/{worker}"))
        read_element(producer)
        producer.sendall(data(f"/p/q/{worker}"))
        read_element(consumer)
    # The name started at worker 0 or 1, so it moves once, in the first or in the second request.
    assert statuses in ([200, 409], [200, 200])
    assert ask(router, "POST", "/ndt/move", {"name": "/p/q", "worker": 2}, token=token_of(router))[0] == 404
    assert len(get(router, "/status")["workers"]) == 2 and isinstance(get(router, "/ndt"), list)
    producer.close(), consumer.close()


def test_others_are_refused(router):
    token = token_of(router)
    assert stat.S_IMODE((router.folder / "state.json.api-token").stat().st_mode) == 0o600
    assert token not in router.log.read_text() and str(router.folder / "state.json.api-token") in router.log.read_text()
    face = {"uri": "udp4://127.0.0.1:7001"}
    for headers, status in [
        ({}, 401),
        ({"Authorization": f"Bearer {token[:-1]}"}, 401),
        ({"Authorization": f"Bearer {token}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {token}", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": f"Bearer {token}", "Host": "rebound.example"}, 421),
        ({"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}, 415),
    ]:
        answered, answer = ask(router, "POST", "/faces", face, headers=headers)
        assert answered == status and answer["error"] and "hint" in answer, headers
    assert ask(router, "GET", "/faces", headers={"Origin": "http://evil.example"})[0] == 403
    assert ask(router, "GET", "/faces", headers={"Host": "rebound.example"})[0] == 421
    assert not any(face["remote_uri"] == "udp4://127.0.0.1:7001" for face in all_items(router, "/faces"))
    # The router's own faces cannot be changed.
    assert ask(router, "PATCH", "/faces/1", {"mtu_bytes": 1400}, token=token)[0] == 422
    assert change(router, "POST", "/faces", face)["created"]


def test_the_token_has_the_rights_of_a_listed_certificate(make_router, tmp_path):
    key, certificate = tmp_path / "operator.key", tmp_path / "operator.ndncert"
    run_namehop("key", "generate", "/operator", "--key", key, "--certificate", certificate)
    rule = f'[[management.authorizations]]\ncertificate = "{certificate}"\nmodules = ["faces", "rib"]\n'
    router = make_router(rule)
    assert router.namehop("face", "create", "udp4://127.0.0.1:7001", check=False).returncode != 0
    assert change(router, "POST", "/faces", {"uri": "udp4://127.0.0.1:7001"})["created"]
    # A memif outside of memif_folders, which commands may not open.
    assert change(router, "POST", "/faces", {"uri": f"memif://{tmp_path}/m.sock?id=0"})["created"]


def test_the_api_can_be_turned_off_or_have_a_token_of_its_own(make_router, tmp_path):
    off = make_router("[api]\nenabled = false\n")
    assert ask_status(off, "/api/v1/status") == 404 and ask_status(off, "/metrics") == 200
    token = tmp_path / "token"
    wrong = make_router(f'[api]\ntoken_file = "{token}"\n', start=False)
    with pytest.raises(AssertionError, match="cannot use the API token"):
        wrong.start()
    wrong.process = None
    token.write_text("a-token-of-my-own\n")
    own = make_router(f'[api]\ntoken_file = "{token}"\n', name="own")
    assert ask(own, "POST", "/cs", {"capacity_packets": 9}, token="a-token-of-my-own")[1]["capacity_packets"] == 9
    assert not (own.folder / "state.json.api-token").exists()


def ask_status(router, path):
    connection = http.client.HTTPConnection("127.0.0.1", router.metrics, timeout=PATIENCE)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def test_beyond_loopback_looking_needs_the_token(make_router):
    router = make_router(start=False)
    router.extra = f'[metrics]\nlisten = "0.0.0.0:{router.metrics}"\n'
    router.start()
    assert ask(router, "GET", "/status")[0] == 401 and ask_status(router, "/metrics") == 200
    assert ask(router, "GET", "/status", token=token_of(router))[0] == 200


def test_curl_as_in_the_documentation(router):
    token, api = token_of(router), f"http://127.0.0.1:{router.metrics}/api/v1"

    def curl(*arguments):
        result = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout) if result.stdout else None

    auth, typed = ["-H", f"Authorization: Bearer {token}"], ["-H", "Content-Type: application/json"]
    face = curl(*auth, *typed, "-d", '{"uri": "udp4://192.0.2.1:6363", "persistency": "permanent"}', f"{api}/faces")["face_id"]
    route = json.dumps({"prefix": "/example", "face_id": face, "cost": 10})
    assert curl(*auth, *typed, "-d", route, "-X", "PUT", f"{api}/routes")["cost"] == 10
    (listed,) = curl("-G", "--data-urlencode", "prefix=/example", f"{api}/routes")["items"]
    assert listed["remote_uri"] == "udp4://192.0.2.1:6363"
    curl(*auth, "-X", "DELETE", f"{api}/routes?prefix=/example&face_id={face}")
    curl(*auth, "-X", "DELETE", f"{api}/faces/{face}")
    assert curl("-G", "--data-urlencode", "prefix=/example", f"{api}/routes") == {"items": [], "next": None}


def resident_mib(router):
    return int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{router.process.pid}/status").read()).group(1)) / 1024


def test_slow_readers_cost_little_and_stop_nobody(make_router, tmp_path):
    fib = tmp_path / "fib.txt"
    fib.write_text("".join(f"/a-prefix-of-some-length/{number} udp4://127.0.0.1:7011\n" for number in range(PREFIXES)))
    router = make_router(f'[fib]\nfile = "{fib}"\n')
    wait_until(lambda: get(router, "/status")["fib_entries"] >= PREFIXES, what="the FIB is loaded")
    before = resident_mib(router)
    slow = []
    for _ in range(SLOW_READERS):
        connection = socket.create_connection(("127.0.0.1", router.metrics), timeout=PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /api/v1/fib HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.append(connection)
    assert get(router, "/cs") and router.json("status")
    assert resident_mib(router) - before < SLOW_READERS_MIB
    # Read the whole table in pages while the slow connections are open.
    prefixes = [entry["prefix"] for entry in all_items(router, "/fib?limit=1000&prefix=/a-prefix-of-some-length")]
    assert len(set(prefixes)) == PREFIXES
    assert resident_mib(router) - before < SLOW_READERS_MIB
    for connection in slow:
        connection.close()
