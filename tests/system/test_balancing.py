"""Two workers, one of which owns all requested names: the router moves some of the names to the other worker by itself. Pending Interests
are still answered, and the new owner does not serve old cached Data.
"""

import os
import select
import threading

from applications import connect_application
from conftest import wait_until
from packets import data, interest, name, read_element, split_element

PREFIXES, PENDING, PROBES = 12, 60, 300
# Number of cached Data per prefix that are requested again and again.
CACHED = 40


def read(connection, count):
    packets, rest = [], b""
    for _ in range(count):
        _, packet, rest = read_element(connection, rest)
        packets.append(packet)
    assert not rest
    return packets


def prefixes_of_first_worker(router, consumer):
    """Finds prefixes whose names all belong to worker 0, from the packet counter of that worker."""
    packets = lambda: router.json("status")["workers"][0]["packets"]
    found, before = [], packets()
    for number in range(100):
        # Without a route, the router answers each Interest with a Nack.
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
    """A consumer that requests cached names as fast as they are answered. After names move, the new owner does not have their Data."""

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
    """Answers Interests for these names and ignores others. Returns a function that stops it and returns the requested names."""
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
        # The router checks the load every five seconds; the first check may see too little of it.
        entries = wait_until(lambda: moved(router), what="names are moved")
    assert 3 <= len(entries) <= PREFIXES - 3, entries
    assert all((entry["former_worker"], entry["worker"]) == (0, 1) for entry in entries), entries

    # Interests that were pending when their name moved are still answered.
    producer.sendall(b"".join(data(name_, b"late") for name_ in waiting))
    assert sorted(read(consumer, len(waiting))) == sorted(data(name_, b"late") for name_ in waiting)

    # The new owner's cache has none of this Data: the first Interest fetches new Data, and the second one hits the cache.
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
    # Data without a PIT token also goes to the present owner, where it is unsolicited.
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
    # Cached Data is found.
    consumer, _ = connect_application(router)
    last = [f"/one/prefix/{number}" for number in range(sent - 100, sent)]
    consumer.sendall(b"".join(interest(each, os.urandom(4)) for each in last))
    assert sorted(read(consumer, 100)) == sorted(data(each, b"") for each in last)
