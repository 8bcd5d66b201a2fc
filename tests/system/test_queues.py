"""Ports with several queues, each owned by another worker: all kinds of frames arrive, whichever queue receives them."""

import os

import pytest
from conftest import wait_until
from port_links import Link, drops, ip, link_state, needs_root, route
from test_links import published, same
from test_workers import OBJECTS, OBJECT_BYTES, objects, publish_all, with_workers  # noqa: F401

pytestmark = needs_root

ADDRESSES = ["192.0.2.1/24", "192.0.2.2/24"]
UDP = ["udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363"]


@pytest.fixture
def link():
    with Link(f"qu{os.getpid()}") as link:
        for namespace, device in zip(link.namespaces, link.devices):
            # Prevents the kernel at this end from assigning itself an address.
            ip("-n", namespace, "link", "set", device, "addrgenmode", "none")
        yield link


def start(make_router, link, *lines, workers=3, drivers=("dev", "dev")):
    routers = []
    for end, name in enumerate(["near", "far"]):
        uri = f"{drivers[end]}://{link.devices[end]}"
        port = [f'[[port]]\nuri = "{uri}"\naddresses = ["{ADDRESSES[end]}"]', *lines, ""]
        router = make_router(with_workers(workers, "\n".join(port), '[ports]\ninterfaces = ["all"]\n'), name=name, start=False)
        router.prefix = link.inside(end)
        routers.append(router.start())
    return routers


def queues(router):
    """Returns worker, received frames and sent frames of each queue."""
    found = {}
    for number, worker in enumerate(router.json("status")["workers"]):
        for queue in worker["queues"]:
            found[queue["queue"]] = (number, queue["received_frames"], queue["sent_frames"])
    return [found[number] for number in sorted(found)]


def create(router, remote, local, *options):
    return router.json("face", "create", remote, "--local", local, "--persistency", "permanent", *options)["face_id"]


def check_nothing_lost(*routers, besides=frozenset()):
    for router in routers:
        status = router.json("status")
        lost = set(status["drops"].get("link", {})) & {"handover-full", "bad-checksum", "malformed-frame"}
        # Consider only drops of existing faces: a closing application may leave a frame for its closed face, but the faces of the port
        # stay.
        lost |= {drop["reason"] for drop in status["face_drops"] if drop["reason"] == "link-down"}
        assert not lost - besides, (lost, status["drops"])


def test_datagrams_are_spread_over_the_queues(make_router, link, objects):  # noqa: F811
    near, far = start(make_router, link)
    faces = [create(router, UDP[1 - end], f"{link.local(end)}?source_port=name") for end, router in enumerate([near, far])]
    route(near, "/", faces[0])
    with publish_all(far, objects):
        for prefix, file in objects.items():
            assert same(near.namehop("cat", prefix, text=False).stdout, file), prefix
    for router in (near, far):
        found = queues(router)
        assert len({worker for worker, _, _ in found}) == 3, "each queue is that of another worker"
        # Each router picks random hash keys, so one of three queues may get none of the ten objects.
        for direction in (1, 2):
            assert sum(queue[direction] > 10 for queue in found) > 1, found
    text = near.namehop("status").stdout
    assert "QUEUE" in text and text.count(link.local(0)) == 3, text
    face = next(face for face in near.json("face", "list") if face["face_id"] == faces[0])
    assert face["in_data"] > OBJECTS * OBJECT_BYTES / 8000, "of all workers together"
    assert "UDP packets by addresses and ports" in near.log.read_text()
    check_nothing_lost(near, far)
    # A new MTU makes the router reopen the port with its queues.
    link.set("mtu", "1400")
    for router in (near, far):
        wait_until(lambda: "port reopened" in router.log.read_text(), what="a port for the new MTU")
    prefix, file = next(iter(objects.items()))
    near.namehop("cs", "erase", "/")
    with published(far, prefix, file):
        assert same(near.namehop("cat", prefix, text=False).stdout, file)


@pytest.mark.parametrize("options", [[], ["--reliability", "on"]], ids=["fragments", "reliability"])
def test_frames_that_need_the_state_of_the_link(make_router, link, objects, options):  # noqa: F811
    near, far = start(make_router, link, workers=2)
    faces = [
        create(router, UDP[1 - end], f"{link.local(end)}?source_port=name", "--mtu", "700", *options)
        for end, router in enumerate([near, far])
    ]
    route(near, "/", faces[0])
    with publish_all(far, objects):
        for prefix, file in objects.items():
            assert same(near.namehop("cat", prefix, text=False).stdout, file), prefix
    assert sum(worker["handed_in"] for worker in near.json("status")["workers"]) > 0
    check_nothing_lost(near, far)


def test_a_whole_window_of_fragments_finds_room(make_router, link, tmp_path):
    """All fragments arrive at one queue. Its worker transfers them to the worker that owns the port, which may have to wait for a CPU."""
    near, far = start(make_router, link, workers=2)
    create(near, UDP[1], link.local(0))
    create(far, UDP[0], link.local(1))
    route(near, "/object", UDP[1])
    content = tmp_path / "object.bin"
    content.write_bytes(os.urandom(1_500_000))
    with published(far, "/object", content, "--segment-size", "8000"):
        for _ in range(8):
            near.namehop("cs", "erase", "/")
            assert same(near.namehop("cat", "/object", text=False).stdout, content)
    assert drops(near, "handover-full") == 0


def test_ethernet_and_unknown_senders(make_router, link, objects):  # noqa: F811
    """NDN frames directly above Ethernet arrive at the first queue, and leave by all queues."""
    near, far = start(make_router, link, "multicast = true", "on_demand = true")
    there = create(near, link.uri(1), link.local(0))
    route(near, "/", there)
    # All objects, because a few names may all belong to one worker.
    with publish_all(far, objects):
        for prefix, file in objects.items():
            assert same(near.namehop("cat", prefix, text=False).stdout, file), prefix
        # The first Interest created the face at the far end.
        assert any(face["remote_uri"] == link.uri(0) for face in far.json("face", "list"))
        first, *others = queues(near)
        assert first[1] > 100 and all(received == 0 for _, received, _ in others)
        assert sum(sent > 0 for _, _, sent in queues(far)) > 1, queues(far)
        over_udp = create(near, UDP[1], link.local(0))
        near.namehop("route", "remove", "/", there)
        near.namehop("cs", "erase", "/")
        route(near, "/", over_udp)
        prefix, file = list(objects.items())[1]
        assert same(near.namehop("cat", prefix, text=False).stdout, file)
        assert any(face["remote_uri"] == UDP[0] for face in far.json("face", "list"))
    assert drops(far, "unknown-sender") == 0
    check_nothing_lost(near, far)


def test_one_queue_if_that_is_wished(make_router, link):
    near, _ = start(make_router, link, "queues = 1")
    assert len(queues(near)) == 1


@pytest.mark.parametrize("drivers", [("xdp", "xdp"), ("xdp", "dev")], ids=["xdp", "dev"])
def test_sockets_of_af_xdp_on_several_queues(make_router, objects, drivers):  # noqa: F811
    """A veth interface receives on the queue that the other end has sent on, so the workers' frames arrive at all queues."""
    with Link(f"qx{os.getpid()}", "numrxqueues", 3, "numtxqueues", 3) as link:
        for namespace, device in zip(link.namespaces, link.devices):
            ip("-n", namespace, "link", "set", device, "addrgenmode", "none")
        near, far = start(make_router, link, "on_demand = true", drivers=drivers)
        local = [f"{driver}://{device}" for driver, device in zip(drivers, link.devices)]
        over_udp = create(near, UDP[1], f"{local[0]}?source_port=name")
        create(far, UDP[0], f"{local[1]}?source_port=name")
        over_ethernet = create(near, link.uri(1), local[0])
        few = dict(list(objects.items())[:3])
        with publish_all(far, objects):
            # Use all objects, so that the names belong to more than one worker with any hash key.
            for face, some in [(over_udp, objects), (over_ethernet, few)]:
                route(near, "/", face)
                near.namehop("cs", "erase", "/")
                for prefix, file in some.items():
                    assert same(near.namehop("cat", prefix, text=False).stdout, file), prefix
                near.namehop("route", "remove", "/", face)
            found = queues(near)
            assert len({worker for worker, _, _ in found}) == 3, found
            assert sum(sent > 0 for _, _, sent in found) > 1, found
            if drivers[1] == "xdp":
                assert sum(received > 10 for _, received, _ in found) > 1, found
            # The link is removed and recreated, and so are the sockets of all queues.
            near.namehop("cs", "erase", "/")
            link.remove()
            wait_until(lambda: link_state(near) == link_state(far) == "down", what="the link is gone")
            link.make()
            wait_until(lambda: link_state(near) == link_state(far) == "up", what="the link is back")
            assert len(queues(near)) == 3
            route(near, "/", over_udp)
            prefix, file = next(iter(few.items()))
            assert same(near.namehop("cat", prefix, text=False).stdout, file)
        check_nothing_lost(near, far, besides={"link-down"})
