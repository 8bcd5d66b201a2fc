"""Fetches over a slow, long link that loses datagrams, made by `namehop traffic relay`."""

import json
import os
import subprocess
from contextlib import contextmanager

import pytest

from applications import published, same
from conftest import PATIENCE, PROGRAM

NO_CACHE = "[content_store]\ncapacity_packets = 0\n"


@contextmanager
def relayed(near, far, *limits):
    """Runs a relay between two routers and routes /object through it. Yields a list, to which it appends the relay's report at the end."""
    command = [PROGRAM, "traffic", "relay", "--to", f"127.0.0.1:{far.udp}", "--json", *limits]
    relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    reports = []
    try:
        address = relay.stderr.readline().split()[2]
        near.namehop("route", "add", "/object", f"udp4://{address}")
        yield reports
        near.namehop("route", "remove", "/object", f"udp4://{address}")
    finally:
        relay.terminate()
        output, _ = relay.communicate(timeout=PATIENCE)
    assert relay.returncode == 0
    reports.append(json.loads(output))


@pytest.fixture
def routers(make_router):
    return make_router(NO_CACHE, name="near"), make_router(NO_CACHE, name="far")


@pytest.mark.parametrize("law", ["adaptive", "cubic", "aimd"])
def test_objects_arrive_whole_over_a_bad_link(routers, tmp_path, law):
    near, far = routers
    content, fetched = tmp_path / "content", tmp_path / "fetched"
    content.write_bytes(os.urandom(2_000_000))
    limits = ["--rate", "50Mbit", "--delay", "5ms", "--loss", "2%", "--duplicate", "1%", "--reorder", "1%"]
    with published(far, "/object", content, "--segment-size", "8000"), relayed(near, far, *limits) as reports:
        result = near.namehop("cat", "/object", "--output", fetched, "--congestion", law, "--json")
    assert same(fetched.read_bytes(), content)
    statistics, ways = json.loads(result.stderr), reports[0]
    for way in ways.values():
        gone = way["lost"] + way["queue_full"] + way["refused"] + way["strangers"]
        assert way["received"] + way["duplicated"] == way["carried"] + gone + way["on_the_way"]
        assert way["strangers"] == way["refused"] == 0 and way["lost"] > 0
    # Each loss, in either direction, costs one retransmission. A late packet may cost one too.
    lost = sum(way["lost"] + way["queue_full"] for way in ways.values())
    assert statistics["retransmissions"] >= lost - way["on_the_way"] - 2, (statistics, ways)
    assert statistics["segments"] == 250


@pytest.mark.alone
def test_two_fetches_at_once_share_a_slow_link(routers, tmp_path):
    """Two concurrent fetches over a real path. The simulated tests of congestion control measure fairness in detail."""
    near, far = routers
    content = tmp_path / "content"
    content.write_bytes(os.urandom(4_000_000))
    names = ["/object/one", "/object/two"]
    one, two = (published(far, name, content, "--segment-size", "8000") for name in names)
    with one, two, relayed(near, far, "--rate", "20Mbit", "--delay", "10ms", "--loss", "0.5%"):
        result = near.namehop("traffic", "fetch", *names, "--discard", "--json")
    rates = [fetched["goodput_bit_per_s"] for fetched in json.loads(result.stdout)["objects"]]
    # Each fetch gets about half of the line until the other one ends.
    assert min(rates) > 0.6 * max(rates) and max(rates) < 16e6, rates


def test_relays_that_cannot_be_say_why(tmp_path):
    def refused(*arguments):
        return subprocess.run([PROGRAM, "traffic", "relay", *arguments], capture_output=True, text=True, timeout=PATIENCE)

    no_address = refused("--to", "127.0.0.1:9", "--listen", "192.0.2.1:7000")
    assert no_address.returncode == 1 and "192.0.2.1:7000" in no_address.stderr
    for option, value, words in [("--loss", "2", "not a share"), ("--rate", "fast", "not a rate"), ("--to", "here", "invalid")]:
        wrong = refused("--to", "127.0.0.1:9", option, value) if option != "--to" else refused(option, value)
        assert wrong.returncode == 2 and words in wrong.stderr, wrong.stderr
