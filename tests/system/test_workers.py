"""Routers with several workers: the same answers as with one worker, over sockets and over a port, and statistics of each worker."""

import os
from contextlib import ExitStack

import pytest
from conftest import wait_until
from packets import data, digest_interest, interest, read_element
from port_links import Link, connect, needs_root, route
from test_commands import connect_application
from test_links import face_to, published, same

OBJECTS = 10
OBJECT_BYTES = 200_000
PENDING = 20_000
INTEREST = 5


@pytest.fixture
def objects(tmp_path):
    """Files by prefix. Each prefix has two components."""
    files = {}
    for number in range(OBJECTS):
        file = tmp_path / f"object{number}.bin"
        file.write_bytes(os.urandom(OBJECT_BYTES))
        files[f"/site{number}/object"] = file
    return files


def with_workers(count, *lines):
    forwarding = f"[forwarding]\nworkers = {count}\nsmall_buffers = 8192\nlarge_buffers = 2048\n"
    return "\n".join([forwarding, "[content_store]\ncapacity_packets = 1001", *lines, ""])


def check_workers(router, count):
    """Checks and returns the statistics of the workers. The counters would show packets lost between workers."""
    workers = router.json("status")["workers"]
    assert len(workers) == count
    handed = [sum(worker[direction] for worker in workers) for direction in ("handed_in", "handed_out")]
    # Transferred packets may still be in the other worker's ring.
    assert abs(handed[0] - handed[1]) < 10, workers
    assert all(worker[f"dropped_{kind}"] == 0 for worker in workers for kind in ("interests", "data", "nacks"))
    assert sum(worker["packets"] > 0 for worker in workers) > 1, "names are divided"
    return workers


def read_elements(connection, count):
    elements, rest = [], b""
    for _ in range(count):
        _, element, rest = read_element(connection, rest)
        elements.append(element)
    return elements


def publish_all(router, objects):
    stack = ExitStack()
    for prefix, file in objects.items():
        stack.enter_context(published(router, prefix, file))
    return stack


@pytest.mark.parametrize("reliability", [False, True])
def test_objects_over_sockets(make_router, objects, reliability):
    near = make_router(with_workers(4), name="near")
    far = make_router(name="far", start=False)
    far.extra = with_workers(3, f'[faces.udp]\nlisten = ["127.0.0.1:{far.udp}"]\nmtu = 1400\n')
    far.start()
    options = ["--persistency", "permanent", "--mtu", "1400", *(["--reliability", "on"] if reliability else [])]
    link = near.json("face", "create", far.udp_uri, *options)["face_id"]
    near.namehop("route", "add", "/", link)
    with publish_all(far, objects):
        for prefix, file in objects.items():
            fetched = near.namehop("cat", prefix, text=False).stdout
            assert same(fetched, file), f"{prefix} in fragments"
        over_tcp = near.namehop("cat", "/site0/object", text=False, env={"NDN_CLIENT_TRANSPORT": near.tcp_uri}).stdout
        assert same(over_tcp, objects["/site0/object"])
    check_workers(near, 4), check_workers(far, 3)
    face = face_to(near, far.udp_uri)
    assert face["in_data"] > OBJECTS * OBJECT_BYTES / 8000, "of all workers together"
    cache = near.json("cs", "info")
    assert cache["capacity_packets"] == 1001 and cache["entries"] > OBJECTS * OBJECT_BYTES / 8000
    # Erases from the caches of all workers, and no more packets than requested.
    assert near.json("cs", "erase", "/", "--count", "100")["erased"] == 100
    assert near.json("cs", "erase", "/")["erased"] >= cache["entries"] - 100
    assert near.json("cs", "info")["entries"] == 0
    near.namehop("cs", "config", "--capacity", "102")
    assert near.json("cs", "info")["capacity_packets"] == 102
    near.namehop("face", "destroy", link)
    assert near.namehop("cat", "/site1/object", check=False).returncode != 0


def test_a_short_interest_is_answered_whoever_has_its_data(make_router):
    """Data has a longer name than such an Interest. Without a PIT token the Data goes to the worker that owns the longer name."""
    router = make_router(with_workers(4))
    producer, face = connect_application(router)
    # Each application gets the Data once, even if one worker owns both Interests.
    (asks_short, _), (asks_long, _) = connect_application(router), connect_application(router)
    for number in range(8):
        prefix = f"/p{number}"
        router.namehop("route", "add", prefix, face)
        asks_short.sendall(interest(prefix, can_be_prefix=True))
        asks_long.sendall(interest(f"{prefix}/x/y"))
        read_elements(producer, 2)
        answer = data(f"{prefix}/x/y", b"content")
        producer.sendall(answer)
        assert read_elements(asks_short, 1) == read_elements(asks_long, 1) == [answer]
    drops = router.json("status")["drops"]
    assert not drops["engine"], drops
    check_workers(router, 4)
    producer.close(), asks_short.close(), asks_long.close()


@pytest.mark.parametrize("count", [1, 2])
def test_many_pending_interests_are_answered_without_tokens(make_router, count):
    """The producer has not shown that it knows PIT tokens. Each Data goes to all workers that may have an Interest for a prefix of its name."""
    router = make_router(with_workers(count))
    producer, face = connect_application(router)
    consumer, _ = connect_application(router)
    router.namehop("route", "add", "/pending", face)
    router.namehop("cs", "config", "--admit", "off")
    chunks = [range(first, first + 500) for first in range(0, PENDING, 500)]
    # Two to six components, of which two select the worker.
    asked = lambda number: f"/pending/{number}" + "/x" * (number % 5)
    for chunk in chunks:
        consumer.sendall(b"".join(interest(asked(number), os.urandom(4), can_be_prefix=number % 2 == 0) for number in chunk))
        assert all(element[0] == INTEREST for element in read_elements(producer, len(chunk)))
    assert router.json("status")["pit_entries"] >= PENDING
    # Data of a prefix Interest has a longer name.
    answer = lambda number: data(asked(number) + "/y" * (1 - number % 2), b"content")
    for chunk in reversed(chunks):
        producer.sendall(b"".join(map(answer, chunk)))
        assert sorted(read_elements(consumer, len(chunk))) == sorted(map(answer, chunk))
    drops = router.json("status")["drops"]
    assert not drops["engine"], drops
    if count > 1:
        check_workers(router, count)
    producer.close(), consumer.close()


@pytest.mark.parametrize("workers", [2, 4])
def test_every_kind_of_interest_finds_its_data(router):
    """By name, prefix and digest, from producer and cache, whichever worker owns the name. Nacks also reach the consumer."""
    (producer, face), (consumer, _) = connect_application(router), connect_application(router)
    router.namehop("route", "add", "/kinds", face)

    def ask(packet):
        consumer.sendall(packet)
        return read_elements(consumer, 1)

    for number in range(16):
        uri = f"/kinds/{number}/x/y"
        answer = data(uri, os.urandom(100), freshness=60_000)
        consumer.sendall(digest_interest(answer))
        read_elements(producer, 1)
        # Other Data with the same name does not match the digest.
        producer.sendall(data(uri, b"other") + answer)
        assert read_elements(consumer, 1) == [answer]
        for cached in [
            digest_interest(answer, os.urandom(4)),
            interest(uri, os.urandom(4)),
            interest(f"/kinds/{number}", os.urandom(4), can_be_prefix=True, must_be_fresh=True),
        ]:
            assert ask(cached) == [answer]
        assert ask(interest(f"/nobody/{number}"))[0][0] == 0x64, "a Nack"
    producer.settimeout(0.1)
    with pytest.raises(TimeoutError):
        producer.recv(1)
    assert router.json("cs", "info")["hits"] == 3 * 16
    check_workers(router, len(router.json("status")["workers"]))
    producer.close(), consumer.close()


def test_names_are_given_to_another_worker(make_router, objects):
    router = make_router(with_workers(2))
    with publish_all(router, objects):
        prefix, file = next(iter(objects.items()))
        refused = []
        for worker in [1, 0, 1]:
            moved = router.namehop("ndt", "move", prefix, worker, check=False)
            assert moved.returncode == 0 or "less than half a minute ago" in moved.stderr, moved.stderr
            refused.append(moved.returncode != 0)
            assert same(router.namehop("cat", prefix, text=False).stdout, file)
        # The first or the second command moves the name. Another move is refused for half a minute.
        assert refused in [[False, True, False], [False, False, True]]
        nobody = router.namehop("ndt", "move", prefix, 2, check=False)
        assert nobody.returncode != 0 and "no worker with this number" in nobody.stderr
        assert sum(worker["dispatch_entries"] for worker in router.json("status")["workers"]) == 65536
        assert isinstance(router.json("ndt", "list"), list)


@needs_root
def test_objects_over_a_port(make_router, objects, tmp_path):
    with Link(f"nw{os.getpid()}") as link:
        routers = []
        for end, name in enumerate(["near", "far"]):
            lines = '[ports]\ninterfaces = ["all"]\n'
            router = make_router(with_workers(2, lines), name=name, start=False)
            router.prefix = link.inside(end)
            routers.append(router.start())
        near, far = routers
        there, _ = connect(near, far, link)
        route(near, "/", there)
        with publish_all(far, objects):
            for prefix, file in objects.items():
                assert same(near.namehop("cat", prefix, text=False).stdout, file), prefix
        for router in routers:
            workers = check_workers(router, 2)
            assert sum(worker["handed_out"] for worker in workers) > 0, "one of them has the port"
        near.namehop("face", "destroy", there)
        wait_until(lambda: "port closed" in near.log.read_text(), what="an unused port is closed")
