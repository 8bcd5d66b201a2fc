"""Routers with nothing to do: they take next to no processor time, and answer the first packet after a silence at once."""

import time

import pytest
from applications import serving
from conftest import of_threads, wait_until
from port_links import is_connected, needs_root, ports

WORKERS = 4
# Of one processor.
MOST_IDLE = 0.01
# Four times through a worker that sleeps. With pauses of 5 ms in place of bells it would be some 10 ms.
MOST_CROSSINGS_MS = 4.0
# Longer than any pause between two looks at a port.
SILENCE = "1500ms"


def memif(folder, role):
    return f"memif://{folder}/memif.sock?id=7" + ("&role=client" if role == "client" else "")


def processor_seconds(router):
    """Of all threads, by the scheduler's clock."""
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
    """Two routers over a memif, with a route from the one to the other."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    server.namehop("face", "create", memif(tmp_path, "server"), "--persistency", "permanent")
    client.namehop("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")
    client.namehop("route", "add", "/ping", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    return server, client


@needs_root
def test_idle_routers_over_a_memif_sleep_and_wake_at_once(pair):
    server, client = pair
    # What was asked of them last stays in memory for a second.
    time.sleep(3)
    shares = [idle_share(router) for router in pair]
    assert max(shares) < MOST_IDLE, shares
    with serving(server, "/ping"):
        pings = client.json("ping", "/ping", "--count", "10", "--interval", SILENCE)
    # Through both routers and back, with workers and applications all asleep. The least of them, because others use the machine, too.
    assert pings["rtt_min_ms"] < MOST_CROSSINGS_MS, pings


def test_an_idle_router_with_sockets_sleeps(router):
    time.sleep(3)
    assert idle_share(router) < MOST_IDLE


def test_workers_that_never_sleep(make_router):
    router = make_router("[forwarding]\nalways_poll = true\nworkers = 1\n")
    # As much as others leave it.
    assert idle_share(router, 2) > 2 * MOST_IDLE
