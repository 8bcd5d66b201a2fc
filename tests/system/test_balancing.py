"""Two workers, of which one has all the names that are asked for: the router gives some of them to the other by itself. Interests that are
pending meanwhile are answered, and nobody gets what was cached before from the new owner.
"""

import os
import select
import threading

from applications import connect_application
from conftest import wait_until
from packets import data, interest, name, read_element, split_element

PREFIXES, PENDING, PROBES = 12, 60, 300
# Cached Data that is asked for again and again.
CACHED = 40


def read(connection, count):
    packets, rest = [], b""
    for _ in range(count):
        _, packet, rest = read_element(connection, rest)
        packets.append(packet)
    assert not rest
    return packets


def prefixes_of_first_worker(router, consumer):
    """Prefixes all of whose names belong to worker 0, which is seen from where packets go."""
    packets = lambda: router.json("status")["workers"][0]["packets"]
    found, before = [], packets()
    for number in range(100):
        # There is no route, so each is answered by a Nack.
        consumer.sendall(b"".join(interest(f"/skew/{number}/{each}", os.urandom(4)) for each in range(PROBES)))
        read(consumer, PROBES)
        after = packets()
        if after - before >= PROBES:
            found.append(f"/skew/{number}")
        before = after
        if len(found) == PREFIXES:
            return found
    raise AssertionError("a hundred prefixes belong to one worker")


class Load:
    """An application that asks for what is cached, as fast as it is answered, until names are moved: the new owner has nothing of them."""

    def __init__(self, router, names):
        self.connection, _ = connect_application(router)
        self.burst = b"".join(interest(name, os.urandom(4)) for name in names)
        self.names, self.asked, self.answered, self.is_over = len(names), 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        rest = b""
        while not self.is_over.is_set():
            if self.answered == self.asked:
                self.connection.sendall(self.burst)
                self.asked += self.names
            if select.select([self.connection], [], [], 0.05)[0]:
                rest += self.connection.recv(1 << 20)
                while parsed := split_element(rest):
                    _, _, rest = parsed
                    self.answered += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.connection.close()


def answering(producer, packets):
    """Answers Interests with these names, and leaves others alone; gives what ends that, and tells which names were asked for."""
    asked, is_over = [], threading.Event()

    def run():
        rest = b""
        while not is_over.is_set():
            if select.select([producer], [], [], 0.05)[0]:
                rest += producer.recv(1 << 20)
                while parsed := split_element(rest):
                    _, packet, rest = parsed
                    for wanted, answer in packets.items():
                        if wanted in packet:
                            asked.append(wanted)
                            producer.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()

    def end():
        is_over.set()
        thread.join()
        return asked

    return end


def moved(router):
    return [entry for entry in router.json("ndt", "list") if entry.get("former_worker") is not None]


def test_skewed_load_is_evened_out_by_itself_and_nothing_is_lost(make_router):
    router = make_router("[forwarding]\nworkers = 2\n")
    (consumer, _), (producer, face) = connect_application(router), connect_application(router)
    prefixes = prefixes_of_first_worker(router, consumer)
    router.namehop("route", "add", "/skew", face)
    names = [f"{prefix}/load/{number}" for prefix in prefixes for number in range(CACHED)]
    once = [f"{prefix}/once" for prefix in prefixes]
    for name_ in names + once:
        consumer.sendall(interest(name_, os.urandom(4)))
        read(producer, 1)
        producer.sendall(old := data(name_, b"old"))
        assert read(consumer, 1) == [old]
    assert moved(router) == [], "nothing has moved yet"
    waiting = [f"{prefix}/pending/{number}" for prefix in prefixes for number in range(PENDING)]
    consumer.sendall(b"".join(interest(name_, os.urandom(4)) for name_ in waiting))
    read(producer, len(waiting))
    with Load(router, names):
        # A look every five seconds, of which the first may have seen too little.
        entries = wait_until(lambda: moved(router), what="names are moved")
    assert 3 <= len(entries) <= PREFIXES - 3, entries
    assert all((entry["former_worker"], entry["worker"]) == (0, 1) for entry in entries), entries

    # What was pending when its name was moved is answered all the same.
    producer.sendall(b"".join(data(name_, b"late") for name_ in waiting))
    assert sorted(read(consumer, len(waiting))) == sorted(data(name_, b"late") for name_ in waiting)

    # The new owner has nothing of it in its cache: who asks again gets what is new, and that is cached then.
    answers = answering(producer, {name(name_): data(name_, b"new") for name_ in once})
    got = []
    for name_ in once * 2:
        consumer.sendall(interest(name_, os.urandom(4)))
        got += read(consumer, 1)
    asked = answers()
    assert got[: len(once)] == got[len(once) :], "the second time from the cache"
    expected = [data(name_, b"new" if name(name_) in asked else b"old") for name_ in once]
    assert got[: len(once)] == expected
    assert len(asked) == len(set(asked)) == len(entries), "neither more nor fewer names than were moved"
    status = router.json("status")
    assert all(worker[f"dropped_{kind}"] == 0 for worker in status["workers"] for kind in ("interests", "data", "nacks"))
    # Data without PIT token goes to the present owner, too, where nobody has asked for it.
    assert status["drops"]["engine"] == {"unsolicited-data": PENDING * len(entries)} and not status["drops"]["link"], status["drops"]


def test_names_below_one_prefix_fill_the_caches_of_all_workers(make_router):
    capacity, burst = 2_000, 1_000
    router = make_router(
        f'[forwarding]\nworkers = 2\n[content_store]\ncapacity_packets = {capacity}\nunsolicited = "admit-all"\npolicy = "lru"\n'
    )
    producer, _ = connect_application(router)
    cached = lambda: [worker["cs_entries"] for worker in router.json("status")["workers"]]
    sent = 0

    def send():
        nonlocal sent
        producer.sendall(b"".join(data(f"/one/prefix/{number}", b"") for number in range(sent, sent + burst)))
        sent += burst

    while sum(cached()) < capacity // 2:
        send()
    assert sorted(cached()) == [0, capacity // 2], "the prefix belongs to one worker"

    def is_filled():
        send()
        return sum(cached()) == capacity

    wait_until(is_filled, what="both caches are full", seconds=60)
    divided = [entry for entry in router.json("ndt", "list") if entry["divided"]]
    assert len(divided) == 1, divided
    # What is cached is found.
    consumer, _ = connect_application(router)
    last = [f"/one/prefix/{number}" for number in range(sent - 100, sent)]
    consumer.sendall(b"".join(interest(each, os.urandom(4)) for each in last))
    assert sorted(read(consumer, 100)) == sorted(data(each, b"") for each in last)
