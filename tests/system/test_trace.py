"""namehop trace: the router's decisions about packets, shown to authorized users."""

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from applications import connect_application
from conftest import wait_until
from packets import interest
from test_http_api import ask, change, token_of
from test_links import published


def start_trace(router, *options):
    """Starts a trace and waits until it runs."""
    process = router.spawn("trace", "--json", *options, text=True)
    assert process.stderr.readline().startswith("tracing packets under ")
    return process


def packets_of(process):
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def stages(packet):
    return [step["stage"] for step in packet["steps"]]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exchange_and_an_answer_from_the_cache(router, tmp_path, workers):
    file = tmp_path / "object"
    file.write_bytes(b"x" * 100)
    with published(router, "/traced/object", file):
        trace = start_trace(router, "--name", "/traced", "--count", "1000", "--seconds", "2")
        router.namehop("cat", "/traced/object")
        router.namehop("cat", "/traced/object")
        packets = packets_of(trace)
    assert {packet["subject"] for packet in packets} == {"interest", "data"}
    assert all(packet["name"].startswith("/traced") for packet in packets)
    assert all(first["time_s"] <= second["time_s"] for first, second in zip(packets, packets[1:])) or workers > 1
    forwarded = next(packet for packet in packets if "fib" in stages(packet))
    assert stages(forwarded) == ["packet", "pit", "cs", "fib", "strategy", "send"]
    assert any(step["text"] == "hit" for packet in packets for step in packet["steps"]), "the second time"
    assert any("cached" == step["text"] for packet in packets for step in packet["steps"])


def test_an_interest_without_route_and_one_without_answer(router):
    connection, _ = connect_application(router)
    trace = start_trace(router, "--name", "/lost", "--count", "3")
    # An existing peer that does not answer. A closed port would take the face down.
    with connection, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        connection.sendall(interest("/lost/nowhere"))
        face = router.json("face", "create", f"udp4://127.0.0.1:{silent.getsockname()[1]}")["face_id"]
        router.namehop("route", "add", "/lost/silent", face)
        connection.sendall(interest("/lost/silent", lifetime=200))
        packets = packets_of(trace)
    assert [packet["subject"] for packet in packets] == ["interest", "interest", "timeout"]
    texts = [[step["text"] for step in packet["steps"]] for packet in packets]
    assert any(text.startswith("no route") for text in texts[0])
    assert texts[1][-1] == f"Interest to face {face}"
    assert texts[2][0].startswith("ends unanswered; 1 face(s)")
    assert packets[2]["face"] is None


def test_a_trace_ends_with_whoever_reads_it(router):
    first = start_trace(router, "--name", "/")
    refused = router.namehop("trace", "--name", "/x", check=False)
    assert refused.returncode == 1 and "a trace is running" in refused.stderr
    first.kill()
    first.communicate()
    # A trace that is not read ends after ten seconds, and another one can start.
    began = time.monotonic()
    probe = ["trace", "--name", "/x", "--seconds", "0"]
    wait_until(lambda: router.namehop(*probe, check=False).returncode == 0, what="it has ended")
    assert time.monotonic() - began > 5
    # An interrupted command cancels its trace.
    second = start_trace(router, "--name", "/")
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=60)
    assert "no packet under /x" in router.namehop(*probe).stdout


def test_over_http(router):
    """A trace over HTTP requires the token, has the same content as that of the command, and shares its limit of one trace at a time."""
    wanted = {"name": "/lost", "count": 2, "seconds": 20}
    assert ask(router, "POST", "/trace", wanted)[0] == 401
    with ThreadPoolExecutor() as pool, router.connect() as connection:
        answer = pool.submit(change, router, "POST", "/trace", wanted)
        refused = ["trace", "--name", "/x", "--seconds", "0"]
        wait_until(lambda: "a trace is running" in router.namehop(*refused, check=False).stderr, what="it runs")
        for number in range(2):
            connection.sendall(interest(f"/lost/{number}"))
        packets = answer.result()
    # Several workers report in any order.
    assert sorted(packet["name"] for packet in packets) == ["/lost/0", "/lost/1"]
    assert all(stages(packet)[-1] == "drop" or "no route" in str(packet["steps"]) for packet in packets)
    assert ask(router, "POST", "/trace", {"name": "/", "count": 1001}, token=token_of(router))[0] == 400
