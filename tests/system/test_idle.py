"""Idle routers use almost no CPU time, and answer the first packet after a pause at once."""

import os
import time

import pytest
from applications import serving
from conftest import of_threads, wait_until
from packets import interest, read_element
from port_links import is_connected, needs_root, ports

WORKERS = 4
# Maximum share of one CPU.
MOST_IDLE = 0.01
# Maximum round trip. It wakes a sleeping worker four times. With polling every 5 ms instead of wake-ups it would take about 10 ms.
MOST_CROSSINGS_SECONDS = 0.004
# Longer than any interval at which ports are polled.
SILENCE_SECONDS = 1.5
# Number of round trips of which one must be fast, because other programs use the host too.
ROUND_TRIPS = 10


def memif(folder, role):
    return f"memif://{folder}/memif.sock?id=7" + ("&role=client" if role == "client" else "")


def processor_seconds(router):
    """Returns the CPU time of all threads in seconds, from the scheduler's clock."""
    return sum(int(text.split()[0]) for text in of_threads(router.process, "schedstat")) / 1e9


def idle_shares(routers, seconds=4):
    """Returns the share of a CPU that each router uses during the same time."""
    before, began = [processor_seconds(router) for router in routers], time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [(processor_seconds(router) - used) / passed for router, used in zip(routers, before)]


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
def test_idle_routers_over_a_memif_sleep(pair):
    # Cached answers of earlier commands stay for a second.
    time.sleep(3)
    shares = idle_shares(pair)
    assert max(shares) < MOST_IDLE, shares


def round_trip_seconds(application, name):
    """Returns the time of one exchange after a pause, in which all workers and applications fell asleep."""
    time.sleep(SILENCE_SECONDS)
    began = time.monotonic()
    application.sendall(interest(name, nonce=os.urandom(4)))
    read_element(application)
    return time.monotonic() - began


@needs_root
@pytest.mark.alone
def test_idle_routers_over_a_memif_wake_at_once(pair):
    server, client = pair
    # The path leads through both routers and back.
    with serving(server, "/ping"), client.connect() as application:
        taken = []
        while len(taken) < ROUND_TRIPS and (not taken or taken[-1] >= MOST_CROSSINGS_SECONDS):
            taken.append(round_trip_seconds(application, f"/ping/ping/{len(taken)}"))
    assert min(taken) < MOST_CROSSINGS_SECONDS, taken


def test_an_idle_router_with_sockets_sleeps(router):
    time.sleep(3)
    (share,) = idle_shares([router])
    assert share < MOST_IDLE


def test_workers_that_never_sleep(make_router):
    router = make_router("[forwarding]\nalways_poll = true\nworkers = 1\n")
    # The router gets only the CPU time that other programs leave.
    (share,) = idle_shares([router], 2)
    assert share > 2 * MOST_IDLE
