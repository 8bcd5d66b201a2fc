"""Packet loss: below saturation no packet is lost; above it, a counter in `namehop status` accounts for every lost packet."""

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

import pytest
from applications import connect_application
from conftest import wait_until
from packets import data, elements, interest, name, split_element
from port_links import ETHERTYPE, connect, frame, link, needs_root, ports, route, send_frames

pytestmark = needs_root

# Interests per second that a router handles easily, and the maximum send rate.
MODERATE, FAST = 3_000, 8_000
# Interests for measuring the speed of this host, and Interests at twice the capacity of the link.
TRIAL, INTERESTS = 500, 6_000
INTEREST_BYTES, DATA_BYTES = 250, 1_000
DATA, LP_PACKET, FRAGMENT, NACK = 6, 0x64, 0x50, 0x320
PIT_CAPACITY = 8_192
# Longer than the receive ring of a port, and longer than a receive queue of the kernel.
BURST_FRAMES, BURST_DATAGRAMS = 2_500, 20_000


def load_name(number):
    """Returns a name of constant length, so that all packets have the same size."""
    return f"/load/{number}/{'x' * (INTEREST_BYTES - 50)}"


class Exchange:
    """A consumer and a producer, with counters of the packets that each has seen."""

    def __init__(self, consumer, producer):
        self.consumer, self.producer = consumer, producer
        self.asked = self.arrived = self.answered = 0
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.answer), threading.Thread(target=self.count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def received(self, connection):
        rest = b""
        while not self.is_over.is_set():
            if select.select([connection], [], [], 0.05)[0]:
                rest += connection.recv(1 << 20)
                while parsed := split_element(rest):
                    kind, element, rest = parsed
                    yield kind, element

    def answer(self):
        for _, packet in self.received(self.producer):
            # Find the first component with its header, and the number that follows it, anywhere in the packet.
            first = name("/load")[2:]
            at = packet.index(first) + len(first) + 2
            self.arrived += 1
            self.producer.sendall(data(load_name(packet[at : at + 6].decode()), bytes(DATA_BYTES - INTEREST_BYTES), freshness=1))

    def count(self):
        for kind, packet in self.received(self.consumer):
            # Data that passed a long queue has a congestion mark, so it is in a link packet.
            fields = elements(elements(packet)[LP_PACKET]) if kind == LP_PACKET else {FRAGMENT: packet}
            self.answered += NACK not in fields and DATA in elements(fields[FRAGMENT])

    def ask(self, per_second, count):
        begin, first = time.monotonic(), self.asked
        while self.asked < first + count:
            while self.asked < min(first + count, first + per_second * (time.monotonic() - begin)):
                self.consumer.sendall(interest(load_name(f"{self.asked:06}"), os.urandom(4)))
                self.asked += 1
            time.sleep(0.002)


def shape(link, end, bits_per_second):
    rate = ["rate", str(bits_per_second), "burst", "5000", "limit", "20000"]
    device = ["qdisc", "add", "dev", link.devices[end], "root", "tbf", *rate]
    subprocess.run([*link.inside(end), "tc", *device], check=True, capture_output=True)


def drops(router):
    """Returns the number of drops by reason, over all layers."""
    return {reason: count for layer in router.json("status")["drops"].values() for reason, count in layer.items()}


def first_drops(router):
    """Returns the drop reasons and counts that `namehop status` lists first."""
    lines = router.namehop("status").stdout.split("DROPPED", 1)[1].splitlines()[1:]
    found = [re.match(r"\s*(\d+)\s+(?:engine|link)\s+(\S+)", line) for line in lines]
    return [(line.group(2), int(line.group(1))) for line in found if line][:5]


def face(router, number):
    return router.json("face", "show", number)


def pair(make_router, link):
    routers = []
    for end, role in enumerate(["near", "far"]):
        # A small PIT fills up with few Interests.
        settings = ports(end).replace("[forwarding]", f"[forwarding]\npit_capacity = {PIT_CAPACITY}")
        router = make_router(settings, name=role, start=False)
        router.prefix = link.inside(end)
        routers.append(router.start())
    return routers


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_below_saturation_nothing_is_lost(make_router, link, workers):
    near, far = pair(make_router, link)
    there, back = connect(near, far, link)
    (consumer, asking), (producer, answering) = connect_application(near), connect_application(far)
    route(near, "/load", there), route(far, "/load", answering)
    before = {app: face(router, app) for router, app in ((near, asking), (far, answering))}
    with Exchange(consumer, producer) as load:
        load.ask(MODERATE, count := MODERATE)
        wait_until(lambda: load.answered >= count, what="every Interest is answered")
        time.sleep(0.2)
    assert (load.asked, load.arrived, load.answered) == (count, count, count)
    assert drops(near) == drops(far) == {}, "no packet is dropped"
    for router, number, sent, came in [(near, there, "out", "in"), (far, back, "in", "out")]:
        counters = face(router, number)
        assert (counters[f"{sent}_interests"], counters[f"{came}_data"]) == (count, count)
    assert face(near, asking)["in_interests"] - before[asking]["in_interests"] == count
    assert face(far, answering)["in_data"] == count


def overload_link(near, far, link, there):
    """Sends twice as many Interests as fit through the link, and twice as much Data as fits back. Each router counts its lost packets."""
    (consumer, _), (producer, answering) = connect_application(near), connect_application(far)
    route(near, "/load", there), route(far, "/load", answering)
    with Exchange(consumer, producer) as load:
        begin = time.monotonic()
        load.ask(FAST, TRIAL)
        wait_until(lambda: load.answered == TRIAL, what="answers")
        per_second = TRIAL / (time.monotonic() - begin)
        shape(link, 0, int(per_second / 2 * (INTEREST_BYTES + 14) * 8))
        shape(link, 1, int(per_second / 4 * (DATA_BYTES + 14) * 8))
        load.ask(per_second, INTERESTS)
        lost = lambda: drops(near).get("send-queue-full", 0), lambda: drops(far).get("send-queue-full", 0)
        wait_until(lambda: load.arrived == load.asked - lost[0](), what="Interests either arrive or are counted as dropped")
        wait_until(lambda: load.answered == load.arrived - lost[1](), what="Data either arrive or are counted as dropped")
    assert load.asked > load.arrived > load.answered > 0
    for end in (0, 1):
        subprocess.run([*link.inside(end), "tc", "qdisc", "delete", "dev", link.devices[end], "root"], check=True, capture_output=True)
    consumer.close(), producer.close()
    return load.asked - load.arrived


def repeat_interests(near):
    """Sends every Interest from two applications; the second one is a duplicate."""
    (consumer, _), (silent, face_id) = connect_application(near), connect_application(near)
    route(near, "/again", face_id)
    packets = [interest(f"/again/{number}", number.to_bytes(4, "big"), lifetime=1000) for number in range(1000)]
    for packet in packets:
        consumer.sendall(packet)
    # Use another face, because the same face may retransmit an Interest.
    again, _ = connect_application(near)
    for packet in packets:
        again.sendall(packet)
    wait_until(lambda: drops(near).get("duplicate-nonce", 0) >= len(packets), what="duplicates are counted")
    consumer.close(), again.close(), silent.close()
    return len(packets)


def fill_pit(near):
    """Sends twice as many Interests as the PIT holds. The application does not answer them."""
    (consumer, _), (silent, face_id) = connect_application(near), connect_application(near)
    route(near, "/silent", face_id)
    silent.setblocking(False)
    sent, before = 2 * PIT_CAPACITY, near.json("status")["pit_entries"]
    for number in range(sent):
        consumer.sendall(interest(f"/silent/{number}", os.urandom(4), lifetime=60_000))
        if number % 64 == 0:
            try:
                while silent.recv(1 << 20):
                    pass
            except BlockingIOError:
                pass
    given_up = lambda: sum(drops(near).get(reason, 0) for reason in ("pit-evicted", "pit-full"))
    pending = lambda: near.json("status")["pit_entries"]
    # The status query is an Interest too.
    wait_until(lambda: -1 <= given_up() + pending() - before - sent <= 1, what="every Interest is pending or was counted when it was given up")
    return given_up()


SENDER = """
import os, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.connect(("127.0.0.1", port))
peer.settimeout(20)
packet = bytearray(bytes.fromhex(sys.argv[3]))
peer.send(packet)
peer.recv(9000)
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    packet[-4:] = number.to_bytes(4, "big")
    peer.send(packet)
print("sent", flush=True)
sys.stdin.readline()
"""


def overwhelm_receivers(near, link):
    """Sends datagrams and frames while the router is stopped."""
    # Without a lifetime, the nonce comes last. There is no route, so the router answers with a Nack.
    packet = interest("/none", b"\0\0\0\0", lifetime=None)
    arguments = [sys.executable, "-c", SENDER, str(near.udp), str(BURST_DATAGRAMS), packet.hex()]
    sender = subprocess.Popen([*link.inside(0), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert sender.stdout.readline() == "ready\n"
        arrived = lambda: sum(each["in_interests"] for each in near.json("face", "list") if not each["local_uri"].startswith(("unix", "internal")))
        before, lost = arrived(), drops(near)
        near.process.send_signal(signal.SIGSTOP)
        sender.stdin.write("go\n"), sender.stdin.flush()
        assert sender.stdout.readline() == "sent\n"
        addresses = link.address(0), link.address(1)
        frames = [frame(*addresses, ETHERTYPE, interest(f"/none/{number}", lifetime=None)) for number in range(BURST_FRAMES)]
        send_frames(link, 1, frames)
        near.process.send_signal(signal.SIGCONT)
        increase = lambda reason: drops(near).get(reason, 0) - lost.get(reason, 0)
        all_lost = lambda: sum(map(increase, ("kernel-queue-full", "receive-ring-full", "handover-full")))
        sent = BURST_DATAGRAMS + BURST_FRAMES
        wait_until(lambda: arrived() - before + all_lost() == sent, what="every packet arrives or is counted as dropped")
        assert increase("kernel-queue-full") > 0 and increase("receive-ring-full") > 0
    finally:
        sender.kill()
        sender.communicate()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_what_is_lost_above_saturation_is_counted_and_shown(make_router, link, workers):
    near, far = pair(make_router, link)
    there, _ = connect(near, far, link)
    sent_in_vain = overload_link(near, far, link, there)
    repeated = repeat_interests(near)
    overwhelm_receivers(near, link)
    given_up = fill_pit(near)
    counted = drops(near)
    assert counted["send-queue-full"] >= sent_in_vain and counted["duplicate-nonce"] == repeated
    assert counted.get("pit-evicted", 0) + counted.get("pit-full", 0) == given_up
    # The five most frequent reasons come first, in descending order.
    shown = first_drops(near)
    assert len(shown) == 5 and shown == sorted(shown, key=lambda reason: -reason[1])
    now = drops(near)
    assert [count for _, count in shown] == sorted(now.values(), reverse=True)[:5] and all(now[reason] == count for reason, count in shown)
