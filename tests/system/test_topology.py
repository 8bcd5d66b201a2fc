"""Several routers, each a separate process, in a line, in a loop and in a diamond."""

import json
import os
import time

import pytest
from applications import published, same, serving
from conftest import wait_until


def link(a, b, transport):
    """Makes a permanent face from a to b and returns its id."""
    return a.json("face", "create", b.uri(transport), "--persistency", "permanent")["face_id"]


def total(router, key):
    return sum(face[key] for face in router.json("face", "list"))


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_an_object_through_a_line(make_router, tmp_path, transport):
    line = [make_router(name=f"line{number}") for number in range(4)]
    for near, far in zip(line, line[1:]):
        near.namehop("route", "add", "/far", link(near, far, transport))
    source = tmp_path / "object"
    source.write_bytes(os.urandom(3_000_000))
    with published(line[-1], "/far/object", source, "--quiet") as publisher:
        assert same(line[0].namehop("cat", "/far/object", text=False).stdout, source)
        versioned = publisher.stderr.readline().decode().strip()
    # The publisher has stopped, so the caches on the path answer.
    assert same(line[0].namehop("cat", versioned, text=False).stdout, source)


def test_no_interest_circulates_in_a_loop(make_router):
    """Three routers with multicast routes for /loop to each other: every Interest ends, and soon."""
    ring = [make_router(name=f"ring{number}") for number in range(3)]
    for here in ring:
        for there in ring:
            if here is not there:
                here.namehop("route", "add", "/loop", link(here, there, "udp"))
        here.namehop("strategy", "set", "/loop", "multicast")
    for number in range(20):
        ring[0].namehop("ping", f"/loop/{number}", "--count", "1", "--timeout", "200ms", check=False)

    def is_quiet():
        before = [total(router, "in_interests") for router in ring]
        time.sleep(1.0)
        after = [total(router, "in_interests") for router in ring]
        # Only the management Interests of `face list` itself may be new.
        return all(late - early < 10 for early, late in zip(before, after)) and before

    counts = wait_until(is_quiet, what="no Interest is under way any more")
    assert all(count < 20 * 12 + 200 for count in counts), counts
    text = json.dumps([router.json("status") for router in ring])
    assert "duplicate-nonce" in text or "dead-nonce" in text, "the loop was recognised"


def test_data_returns_around_a_loop_with_a_producer(make_router):
    ring = [make_router(name=f"ring{number}") for number in range(3)]
    for here, there in zip(ring, ring[1:] + ring[:1]):
        here.namehop("route", "add", "/ring", link(here, there, "udp"), "--cost", "10")
    with serving(ring[2], "/ring/answer"):
        output = ring[0].namehop("ping", "/ring/answer", "--count", "5", "--interval", "20ms").stdout
        assert " 0.0% loss" in output, output


def test_asf_recovers_from_a_cut_link(make_router):
    """A diamond: entry - (upper | lower) - exit. The path in use is cut, and asf moves to the other path."""
    entry, upper, lower, exit_ = (make_router(name=name) for name in ("entry", "upper", "lower", "exit"))
    entry.namehop("route", "add", "/d", link(entry, upper, "udp"), "--cost", "1")
    entry.namehop("route", "add", "/d", link(entry, lower, "udp"), "--cost", "2")
    for middle in (upper, lower):
        middle.namehop("route", "add", "/d", link(middle, exit_, "udp"))
    entry.namehop("strategy", "set", "/d", "asf")
    with serving(exit_, "/d/answer"):
        output = entry.namehop("ping", "/d/answer", "--count", "10", "--interval", "20ms").stdout
        assert " 0.0% loss" in output, output
        upper.kill()
        # asf abandons a next hop after three consecutive timeouts of at least 200 ms each: the first 600 ms are lost. A busy host, where
        # round-trip times vary, loses more.
        recovered = lambda: " 0.0% loss" in entry.namehop(
            "ping", "/d/answer", "--count", "10", "--interval", "20ms", "--timeout", "1s", check=False
        ).stdout
        wait_until(recovered, what="asf moves to the other path")
        upper.process = None


def test_a_tcp_link_heals_when_its_peer_comes_back(make_router):
    near, far = make_router(name="near"), make_router(name="far")
    near.namehop("route", "add", "/heal", link(near, far, "tcp"))
    with serving(far, "/heal/answer"):
        near.namehop("ping", "/heal/answer", "--count", "1")
    far.kill()
    far.start()
    with serving(far, "/heal/answer"):
        wait_until(
            lambda: near.namehop("ping", "/heal/answer", "--count", "1", "--timeout", "500ms", check=False).returncode == 0,
            what="the permanent face reconnects",
        )
