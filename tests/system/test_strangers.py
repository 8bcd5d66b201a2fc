"""Unsolicited remote peers that exceed their share of faces, connections and memory.

The router has its own network namespace, in which every address of 10.9.0.0/16 is local, so that a test can have any number of peers.
"""

import json
import os
import subprocess
import sys

import pytest
from applications import connect_application
from conftest import PATIENCE, ROOT, Router, wait_until
from packets import data, interest, read_element
from port_links import ip

ADDRESS = "10.8.0.1"

# The beginning of each peer script.
PRELUDE = """
import json, os, select, socket, sys, time
sys.path.insert(0, sys.argv[1])
from packets import data, interest, read_element
router = (sys.argv[2], int(sys.argv[3]))

def stranger(number, kind):
    connection = socket.socket(socket.AF_INET, kind)
    connection.bind((f"10.9.{number >> 8 & 255}.{number & 255}", 0))
    connection.connect(router)
    return connection

def asks(connection, attempts=10):
    # There is no route, so the router answers with a Nack. Any datagram may get lost, and who asks again gets its answer.
    connection.settimeout(5)
    for _ in range(attempts):
        try:
            connection.send(interest("/no/route", nonce=os.urandom(4)))
            return bool(connection.recv(65536))
        except TimeoutError:
            pass
        except ConnectionError:
            return False
    return False
"""


@pytest.fixture
def make_far_router(tmp_path):
    """Makes routers that peers in the same network namespace can reach."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    namespace = f"sockets-{os.getpid()}"
    routers = []
    try:
        try:
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "address", "add", f"{ADDRESS}/32", "dev", "lo")
            ip("-n", namespace, "route", "add", "local", "10.9.0.0/16", "dev", "lo")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"cannot make network namespaces: {error}")

        def make(extra="", wrapper=()):
            router = Router(tmp_path, "", namespace)
            router.prefix = ["ip", "netns", "exec", namespace, *wrapper]
            router.extra = (
                f'[faces.tcp]\nlisten = ["{ADDRESS}:{router.tcp}"]\n[faces.udp]\nlisten = ["{ADDRESS}:{router.udp}"]\n' + extra
            )
            routers.append(router)
            return router.start()

        yield make
        for router in routers:
            router.stop()
    finally:
        for router in routers:
            if router.process and router.process.poll() is None:
                router.kill()
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)


def run_strangers(router, script, port):
    """Runs a script in the router's network namespace. Returns the process, which prints JSON lines."""
    command = ["ip", "netns", "exec", router.name, sys.executable, "-c", PRELUDE + script]
    arguments = [str(ROOT / "tests/system"), ADDRESS, str(port)]
    return subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process):
    text = process.stdout.readline()
    assert text, f"the strangers' script ended with {process.wait(PATIENCE)}"
    return json.loads(text)


def end(process):
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


def drops(router):
    return router.json("status")["drops"]["link"]


def strangers(router):
    return {face["remote_uri"]: face["face_id"] for face in router.json("face", "list") if "://10.9." in face["remote_uri"]}


FLOOD = """
steady = stranger(1, socket.SOCK_DGRAM)
# Who has sent a packet since it has a face keeps it.
assert asks(steady) and asks(steady)
print(json.dumps(steady.getsockname()), flush=True)
packet = interest("/flood", nonce=b"abcd")
lost = 0
for number in range(256, 256 + 12_446):
    forged = stranger(number, socket.SOCK_DGRAM)
    forged.send(packet)
    forged.close()
    if number % 1000 == 0:
        lost += not asks(steady)
# Who is new gets in, at the latest when it asks again.
newcomer = stranger(2, socket.SOCK_DGRAM)
print(json.dumps({"lost": lost, "newcomer": asks(newcomer)}), flush=True)
sys.stdin.read()
"""


def test_forged_datagrams_push_nobody_out_and_lock_nobody_out(make_far_router):
    router = make_far_router("[faces]\nmax_faces = 1024\n")
    process = run_strangers(router, FLOOD, router.udp)
    address, port = line(process)
    uri = f"udp4://{address}:{port}"
    face = strangers(router)[uri]
    result = line(process)
    assert result == {"lost": 0, "newcomer": True}
    assert strangers(router)[uri] == face, "the same face all the time"
    assert len(strangers(router)) <= 1024 * 3 // 8
    counted = drops(router)
    assert counted["face-evicted"] > 0 and counted["too-many-faces"] > 0
    end(process)


SILENT = """
speaker = stranger(1, socket.SOCK_STREAM)
assert asks(speaker)
silent = [stranger(2 + number, socket.SOCK_STREAM) for number in range(20)]
print(json.dumps(len(silent)), flush=True)
# They have to be silent for one second.
time.sleep(1.5)
# Another one comes and finds the places too full of silent ones.
late = stranger(100, socket.SOCK_STREAM)
assert asks(late)
closed, end = 0, time.monotonic() + 60
while closed < 5 and time.monotonic() < end:
    time.sleep(0.1)
    closed = len(select.select(silent, [], [], 0)[0])
# No more of them than need be.
time.sleep(1)
closed = len(select.select(silent, [], [], 0)[0])
print(json.dumps({"closed": closed, "speaker": asks(speaker)}), flush=True)
sys.stdin.read()
"""


def test_silent_connections_are_closed_when_places_run_short(make_far_router):
    router = make_far_router("[faces]\nmax_faces = 80\nsilent_timeout_s = 1\n")
    process = run_strangers(router, SILENT, router.tcp)
    # 80 faces: 20 are reserved, 30 are for connections of unsolicited peers, and 15 is half of those.
    assert line(process) == 20
    result = line(process)
    assert result["speaker"] and 5 <= result["closed"] <= 7, result
    end(process)


MANY = """
held = []
for number in range(600):
    try:
        held.append(stranger(256 + number, socket.SOCK_STREAM))
    except OSError:
        pass
print(json.dumps(len(held)), flush=True)
sys.stdin.read()
"""


def test_strangers_leave_file_descriptors_for_the_operator(make_far_router):
    router = make_far_router(wrapper=["prlimit", "--nofile=64:512"])
    with open(f"/proc/{router.process.pid}/limits") as limits:
        (files,) = [text.split() for text in limits if text.startswith("Max open files")]
    assert files[3:5] == ["512", "512"], "the soft limit was raised"
    process = run_strangers(router, MANY, router.tcp)
    line(process)
    # (512 - 128) / 2 connections; unsolicited peers may have half of them.
    wait_until(lambda: 0 < len(strangers(router)) <= 96, what="strangers are bounded")
    router.namehop("route", "add", "/after", "udp4://10.8.0.1:7")
    assert (router.folder / "state.json").read_text().count("/after") == 1
    applications = [router.connect() for _ in range(50)]
    wait_until(lambda: len(router.json("face", "list")) >= 50, what="applications have faces")
    for application in applications:
        application.close()
    assert "cannot accept" not in router.log.read_text()
    end(process)


SLOW = """
wanted = b"".join(interest(f"/slow/{number}", nonce=os.urandom(4)) for number in range(300))
connections = []
for number in range(300):
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.bind((f"10.9.1.{number % 250}", 0))
    connection.connect(router)
    connection.sendall(wanted)
    connections.append(connection)
print(json.dumps(len(connections)), flush=True)
good = stranger(2, socket.SOCK_STREAM)
good.settimeout(60)
for number in range(300):
    good.sendall(interest(f"/slow/{number}", nonce=os.urandom(4)))
    element = read_element(good)[1]
    assert len(element) > 7000
print(json.dumps("good"), flush=True)
sys.stdin.read()
"""


# Memory that slow readers may make the router use, part by part.
SLOW_READERS, WANTED_EACH, SLOW_BYTES = 300, 300, 7000
SMALL_BUFFERS, LARGE_BUFFERS, ALL_SEND_QUEUES_BYTES = 32768, 8192, 32 << 20
# A packet buffer has 2048 or 9216 bytes for the packet, 128 bytes of headroom, 256 bytes of private area and a header of 128 bytes. All
# buffers may be in rings or send queues, and the router prepares up to 32 MiB of each size in advance.
PACKET_BYTES = SMALL_BUFFERS * (2048 + 512) + LARGE_BUFFERS * (9216 + 512)
# Unsolicited peers have half of the budget, and each queue may have 16 KiB in addition.
QUEUE_BYTES = ALL_SEND_QUEUES_BYTES // 2 + SLOW_READERS * (16 << 10)
# The dead nonce list takes 16 MiB with the default PIT. The router touches all of it at about the first packet.
DEAD_NONCE_LIST_BYTES = 16 << 20
# Records of 300 faces, growing tables, queues that are copied when they grow, and heap fragmentation. A measurement found 10 MiB.
OTHER_BYTES = 32 << 20
GROWTH_BYTES = PACKET_BYTES + QUEUE_BYTES + DEAD_NONCE_LIST_BYTES + OTHER_BYTES
# Unlimited queues would exceed this by far.
assert SLOW_READERS * WANTED_EACH * SLOW_BYTES > 2 * GROWTH_BYTES


def peak_resident_bytes(router):
    with open(f"/proc/{router.process.pid}/status") as status:
        (kilobytes,) = [int(text.split()[1]) for text in status if text.startswith("VmHWM")]
    return kilobytes * 1024


@pytest.mark.alone
def test_hundreds_of_slow_readers_take_bounded_memory_and_are_closed(make_far_router):
    router = make_far_router(
        f"[forwarding]\nsmall_buffers = {SMALL_BUFFERS}\nlarge_buffers = {LARGE_BUFFERS}\n"
        f"[faces]\nall_send_queues_bytes = {ALL_SEND_QUEUES_BYTES}\nblocked_timeout_s = 3\n"
    )
    producer, face = connect_application(router)
    router.namehop("route", "add", "/slow", face)
    consumer = router.connect()
    for number in range(300):
        consumer.sendall(interest(f"/slow/{number}", nonce=os.urandom(4)))
        read_element(producer)
        producer.sendall(data(f"/slow/{number}", bytes(SLOW_BYTES)))
        read_element(consumer)
    before = peak_resident_bytes(router)
    process = run_strangers(router, SLOW, router.tcp)
    assert line(process) == 300
    assert line(process) == "good", "who reads has everything"
    wait_until(lambda: drops(router).get("peer-blocked", 0) >= 300, what="all are closed")
    grown = peak_resident_bytes(router) - before
    assert grown < GROWTH_BYTES, f"{grown >> 20} MiB where {GROWTH_BYTES >> 20} are accounted for"
    assert drops(router)["send-queue-full"] > 0
    end(process)
