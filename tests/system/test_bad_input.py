"""Malformed input: every bad packet is counted as a drop with a named reason, and other peers are not affected."""

import json
import os
import random
import socket
import subprocess
import sys
import time

import pytest
from applications import connect_application, serving
from conftest import PATIENCE, wait_until
from packets import data, interest, name, number, read_element, tlv


def closes(connection):
    """True if the router closes this connection."""
    try:
        while connection.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def alive(router):
    assert router.json("status"), "the router answers"


def drops(router):
    """Returns the number of dropped packets by layer and reason. Reasons with no drops are omitted."""
    return router.json("status")["drops"]


def dropped(router):
    return sum(count for layer in drops(router).values() for count in layer.values())


@pytest.mark.parametrize("garbage", [
    b"\x00" * 100,
    b"\xff" * 100,
    number(5) + b"\xfe\x7f\xff\xff\xff" + b"x" * 100,
    number(5) + b"\xfd\x00\x05" + b"x" * 100,
    tlv(5, b"x" * 9000),
], ids=["zeros", "ones", "huge-length", "long-form-length", "oversized"])
@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_framing_error_closes_that_stream_only(router, transport, garbage):
    bystander, _ = connect_application(router)
    if transport == "unix":
        connection = router.connect()
    else:
        connection = socket.create_connection(("127.0.0.1", router.tcp), 5)
    connection.sendall(garbage)
    assert closes(connection)
    bystander.sendall(interest("/still/here", nonce=os.urandom(4)))
    read_element(bystander)
    alive(router)


WELL_FRAMED = {
    "empty-interest": tlv(5, b""),
    "no-name": tlv(5, tlv(0x0A, b"abcd")),
    "empty-name": tlv(5, tlv(7, b"") + tlv(0x0A, b"abcd")),
    "short-nonce": tlv(5, name("/a") + tlv(0x0A, b"abc")),
    "name-too-deep": tlv(5, tlv(7, tlv(8, b"") * 4300) + tlv(0x0A, b"abcd")),
    "critical-unknown": tlv(5, name("/a") + tlv(0x0A, b"abcd") + tlv(31, b"")),
    "nested-length": tlv(5, tlv(7, number(8) + number(200) + b"x")),
    "empty-data": tlv(6, b""),
    "lp-fragment-missing-sequence": tlv(100, tlv(82, b"\1") + tlv(83, b"\2") + tlv(80, b"x")),
    "lp-unknown-critical": tlv(100, tlv(0x61, b"") + tlv(80, interest("/a"))),
    "lp-of-nothing-known": tlv(100, tlv(80, tlv(0xF0, b"abc"))),
    "hop-limit-zero": interest("/a", hop_limit=0),
    "next-hop-without-permission": tlv(100, tlv(816, b"\1") + tlv(80, interest("/a"))),
}


@pytest.mark.parametrize("packet", WELL_FRAMED.values(), ids=WELL_FRAMED.keys())
@pytest.mark.parametrize("transport", ["unix", "udp"])
def test_a_bad_packet_is_a_counted_drop_and_its_face_lives_on(router, transport, packet):
    if transport == "unix":
        connection = router.connect()
    else:
        connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        connection.connect(("127.0.0.1", router.udp))
        connection.settimeout(PATIENCE)
    # The router accepts a peer only if its first packet is NDN.
    connection.send(interest("/before", nonce=os.urandom(4)))
    assert connection.recv(65536)
    before = dropped(router)
    connection.send(packet)
    wait_until(lambda: dropped(router) > before, what=f"the drop is counted: {drops(router)}")
    connection.send(interest("/after", nonce=os.urandom(4)))
    assert connection.recv(65536)


OTHER_ELEMENTS = {
    "unknown-element": tlv(200, b"x" * 300),
    "long-unknown-element": tlv(200, b"x" * 300_000),
    "invalid-link-packet": WELL_FRAMED["lp-unknown-critical"],
    "link-packet-of-text": tlv(100, tlv(80, b"text")),
}


@pytest.mark.parametrize("element", OTHER_ELEMENTS.values(), ids=OTHER_ELEMENTS.keys())
def test_a_unix_stream_that_begins_with_another_element_lives_on(router, element):
    connection = router.connect()
    before = dropped(router)
    connection.sendall(element + interest("/after", nonce=os.urandom(4)))
    assert connection.recv(65536)
    assert dropped(router) == before + 1, drops(router)


def test_an_element_that_never_ends_takes_no_memory(router):
    connection = router.connect()
    connection.sendall(number(200) + b"\xff" + (1 << 63).to_bytes(8, "big"))
    before = router.resident_bytes()
    for _ in range(200):
        connection.sendall(b"x" * 1_000_000)
    assert router.resident_bytes() < before + 20_000_000
    assert drops(router)["link"]["not-ndn-frame"] == 1
    alive(router)


def test_random_datagrams_are_counted_and_do_no_harm(router):
    bystander, _ = connect_application(router)
    generator = random.Random(7)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    seeds = [interest("/a/b", hop_limit=3), data("/a/b", b"x" * 200), tlv(100, tlv(81, bytes(8)) + tlv(83, b"\3") + tlv(80, b"abc"))]
    for _ in range(20_000):
        packet = bytearray(generator.choice(seeds))
        for _ in range(generator.randrange(6)):
            packet[generator.randrange(len(packet))] = generator.randrange(256)
        sender.sendto(packet[: generator.randrange(1, len(packet) + 1)], ("127.0.0.1", router.udp))
    wait_until(lambda: dropped(router) > 1000, what="bad ones are counted")
    bystander.sendall(interest("/still/here", nonce=os.urandom(4)))
    read_element(bystander)


def test_names_that_are_dropped_are_said_in_the_log_once(make_router, workers):
    router = make_router("[forwarding]\nmax_name_bytes = 2000\nlong_name_bytes_per_s = 10000\n")
    connection, face = connect_application(router)
    limits = {"name-too-long": ("max_name_bytes", 2500), "too-many-long-names": ("long_name_bytes_per_s", 1500)}
    for _ in range(2):
        for number in range(100):
            for _, length in limits.values():
                connection.sendall(interest(f"/{number}/{'x' * length}", nonce=os.urandom(4)))
        wait_until(lambda: all(drops(router)["engine"].get(reason, 0) > 50 for reason in limits), what="both limits are reached")
        time.sleep(0.5)
    for reason, (setting, _) in limits.items():
        lines = [line for line in router.log.read_text().splitlines() if f"reason={reason}" in line]
        # Each worker counts and reports its own drops.
        assert 1 <= len(lines) <= workers, lines
        assert all("WARN" in line and f"raise {setting} in [forwarding]" in line and f"face={face} " in line for line in lines), lines


@pytest.mark.parametrize("lifetime", [0, 1, 2**63, 2**64 - 1])
def test_an_interest_with_an_extreme_lifetime_is_forwarded(router, lifetime):
    producer, face = connect_application(router)
    router.namehop("route", "add", "/extreme", face)
    consumer = router.connect()
    consumer.sendall(interest("/extreme/x", lifetime=lifetime, nonce=os.urandom(4)))
    kind, _, _ = read_element(producer)
    assert kind in (5, 100)
    alive(router)


def test_a_flood_of_unanswered_interests_leaves_room_for_others(make_router):
    router = make_router("[forwarding]\npit_capacity = 4096\n")
    silent, silent_face = connect_application(router)
    router.namehop("route", "add", "/silent", silent_face)
    producer, face = connect_application(router)
    router.namehop("route", "add", "/fine", face)
    flooder, consumer = router.connect(), router.connect()
    for burst in range(40):
        flood = b"".join(interest(f"/silent/{burst}/{i}", nonce=os.urandom(4)) for i in range(500))
        flooder.sendall(flood)
        consumer.sendall(interest(f"/fine/{burst}", nonce=os.urandom(4)))
        read_element(producer)
        producer.sendall(data(f"/fine/{burst}", b"ok"))
        kind, _, _ = read_element(consumer)
        assert kind in (6, 100), "legitimate traffic goes on"
        silent.setblocking(False)
        try:
            while silent.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
    assert router.json("status")["pit_entries"] <= 4096


FLOODER = """
import os, socket, sys, threading
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
flood = sys.stdin.buffer.read()
def drain():
    while connection.recv(1 << 20):
        pass
threading.Thread(target=drain, daemon=True).start()
print("flooding", flush=True)
while True:
    connection.sendall(flood)
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("transport", ["unix", "udp"])
def test_applications_that_flood_do_not_starve_others(router, transport, workers):
    """Two local applications send as fast as they can; a third one still gets its answers, and in time."""
    packets = b"".join(interest(f"/no/route/{i}", nonce=os.urandom(4)) for i in range(20_000))
    flooders = []
    try:
        with serving(router, "/fair"):
            for _ in range(2):
                flooder = subprocess.Popen(
                    [sys.executable, "-c", FLOODER, str(router.socket)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
                flooders.append(flooder)
                flooder.stdin.write(packets)
                flooder.stdin.close()
                assert flooder.stdout.readline()
            ping = ["ping", "/fair", "--count", "20", "--interval", "50ms", "--timeout", "30s", "--json"]
            report = json.loads(router.namehop(*ping, "--transport", router.uri(transport)).stdout)
            assert report["received"] == 20, report
            # A quiet host takes 2 to 10 ms on average, and a host with three times as many busy threads as cores 110 ms.
            assert report["rtt_avg_ms"] < 500 and report["rtt_max_ms"] < 3_000, report
    finally:
        for process in flooders:
            process.kill()
            process.wait(PATIENCE)


def test_a_slow_reader_costs_only_itself(make_router):
    router = make_router('[faces]\nsend_queue_bytes = "64 KiB"\n')
    producer, face = connect_application(router)
    router.namehop("route", "add", "/slow", face)
    slow, quick = router.connect(), router.connect()
    for i in range(2000):
        slow.sendall(interest(f"/slow/{i}", nonce=os.urandom(4)))
        read_element(producer)
        producer.sendall(data(f"/slow/{i}", b"x" * 4000))
    quick.sendall(interest("/slow/quick", nonce=os.urandom(4)))
    element, rest = b"", b""
    while b"quick" not in element:
        _, element, rest = read_element(producer, rest)
    producer.sendall(data("/slow/quick", b"ok"))
    kind, _, _ = read_element(quick)
    assert kind in (6, 100)
    assert drops(router)["link"]["send-queue-full"] > 0


def test_many_connections_leave_nothing_behind(router):
    before = len(router.json("face", "list"))
    for _ in range(20):
        connections = [router.connect() for _ in range(50)]
        for connection in connections:
            connection.close()
    # The list contains the face of the command itself both times.
    wait_until(lambda: len(router.json("face", "list")) <= before, what="faces go with their connections")


CHURNER = """
import socket, sys
print("connecting", flush=True)
while True:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.close()
"""


def test_connections_that_come_and_go_do_not_keep_commands_waiting(router):
    churner = subprocess.Popen([sys.executable, "-c", CHURNER, str(router.socket)], stdout=subprocess.PIPE)
    try:
        assert churner.stdout.readline()
        # While the accept queue is full, the connection of the command may be refused.
        answers = lambda: router.namehop("status", check=False).returncode == 0
        for _ in range(20):
            wait_until(answers, what="a command is answered")
            time.sleep(0.1)
    finally:
        churner.kill()
        churner.wait(PATIENCE)
