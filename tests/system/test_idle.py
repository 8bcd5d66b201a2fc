"""Idle routers use almost no CPU time, and answer the first packet after a pause at once."""

import time

import pytest
from applications import serving
from conftest import of_threads, wait_until
from port_links import is_connected, needs_root, ports

WORKERS = 4
# Maximum share of one CPU.
MOST_IDLE = 0.01
# Maximum round trip. It wakes a sleeping worker four times. With polling every 5 ms instead of wake-ups it would take about 10 ms.
MOST_CROSSINGS_MS = 4.0
# Longer than any interval at which ports are polled.
SILENCE = "1500ms"


def memif(folder, role):
    return f"memif://{folder}/memif.sock?id=7" + ("&role=client" if role == "client" else "")


def processor_seconds(router):
    """Returns the CPU time of all threads in seconds, from the scheduler's clock."""
    return sum(int(text.split()[0]) for text in of_threads(router.process, "schedstat")) / 1e9


def idle_share(router, seconds=4):
    before, began = processor_seconds(router), time.monotonic()
    time.sleep(seconds)
    return (processor_seconds(router) - before) / (time.monotonic() - began)


@pytest.fixture
def workers():
    return WORKERS


@pytest.fixture
def pair(make_router, tmp_path):
    """Two routers linked by a memif, with a route from the client to the server."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    server.namehop("face", "create", memif(tmp_path, "server"), "--persistency", "permanent")
    client.namehop("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")
    client.namehop("route", "add", "/ping", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    return server, client


@needs_root
def test_idle_routers_over_a_memif_sleep_and_wake_at_once(pair):
    server, client = pair
    # Cached answers of earlier commands stay for a second.
    time.sleep(3)
    shares = [idle_share(router) for router in pair]
    assert max(shares) < MOST_IDLE, shares
    with serving(server, "/ping"):
        pings = client.json("ping", "/ping", "--count", "10", "--interval", SILENCE)
    # The path leads through both routers and back, with all workers and applications asleep. Take the minimum, because other programs use
    # the host too.
    assert pings["rtt_min_ms"] < MOST_CROSSINGS_MS, pings


def test_an_idle_router_with_sockets_sleeps(router):
    time.sleep(3)
    assert idle_share(router) < MOST_IDLE


def test_workers_that_never_sleep(make_router):
    router = make_router("[forwarding]\nalways_poll = true\nworkers = 1\n")
    # The router gets only the CPU time that other programs leave.
    assert idle_share(router, 2) > 2 * MOST_IDLE
