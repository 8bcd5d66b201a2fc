"""`namehop traffic` over memif and network interfaces. It accounts for every packet, also on bad links and after the router was killed."""

import json
import os
import signal
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM, wait_until
from port_links import Link, needs_root, ports, start

LOAD = "/load"


def spawn(*arguments, prefix=(), transport=None):
    """Starts a command of `namehop traffic`."""
    environment = {**os.environ, "NDN_CLIENT_TRANSPORT": transport or ""}
    command = [*prefix, PROGRAM, "traffic", *map(str, arguments), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def report_of(process, code=0):
    """Waits for the end of a command and returns its report."""
    output, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"{process.args}: {process.returncode}\n{output}\n{error}"
    return json.loads(output)


def consumed(report):
    """Returns the consumer's report, after checking that it counts every Interest and every frame exactly once."""
    (consumer,) = report["consumers"]
    line = consumer["link"]
    assert consumer["interests"] == sum(consumer[kind] for kind in ("data", "nacks", "timeouts", "unanswered")), consumer
    assert consumer["interests"] == line["frames_sent"] + line["frames_waiting"] + sum(line["send_losses"].values()), consumer
    return consumer


def produced(report):
    """Returns the producer's report, after checking that it counts every Interest exactly once."""
    (producer,) = report["producers"]
    unanswered = sum(producer[kind] for kind in ("silent", "unmatched", "too_large", "delay_full", "delayed_at_end"))
    assert producer["interests"] == producer["data"] + producer["nacks"] + unanswered, producer
    return producer


def wait_for_producer(*link, **options):
    """Waits until an Interest of this consumer is answered, because the producer's link needs a moment."""

    def is_answered():
        asking = spawn("consumer", LOAD, "--count", 1, "--lifetime", "200ms", *link, **options)
        output, error = asking.communicate(timeout=PATIENCE)
        # Exit code 4: no Data came.
        assert asking.returncode in (0, 4), error
        return asking.returncode == 0

    wait_until(is_answered, what="the producer answers")


def memif(folder, name, role="client"):
    return f"memif://{folder}/{name}.sock?id=0" + ("&role=client" if role == "client" else "")


@pytest.fixture
def between_memifs(make_router, tmp_path):
    """A router with a memif for the consumer and a memif for the producer, and a route to the producer."""
    router = make_router(ports(0))
    for name in ("consumer", "producer"):
        router.namehop("face", "create", memif(tmp_path, name, "server"), "--persistency", "permanent")
    router.namehop("route", "add", LOAD, memif(tmp_path, "producer", "server"))
    return router


@needs_root
@pytest.mark.parametrize("payload, pace", [(100, ["--window", 64]), (8000, ["--rate", 2000])])
def test_memif_through_a_router(between_memifs, tmp_path, payload, pace):
    producer = spawn("producer", LOAD, "--link", memif(tmp_path, "producer"), "--payload", payload)
    try:
        link = ["--link", memif(tmp_path, "consumer")]
        wait_for_producer(*link)
        consumer = consumed(report_of(spawn("consumer", LOAD, *link, "--count", 1000, *pace)))
    finally:
        producer.send_signal(signal.SIGINT)
    served = produced(report_of(producer))
    assert consumer["data"] == 1000, consumer
    assert served["interests"] > 1000 and not served["link"]["send_losses"], served
    # The router and the producer fragment packets that are larger than a memif buffer.
    for frames in (consumer["link"]["frames_received"], served["link"]["frames_sent"]):
        assert frames >= 1000 * -(-payload // 2048)


@needs_root
@pytest.mark.parametrize("scheme", ["dev", "xdp"])
@pytest.mark.parametrize("side", ["consumer", "producer"])
def test_network_interfaces(make_router, tmp_path, scheme, side):
    """Packets larger than the interface's frames, with the router at the other end of the link."""
    with Link(f"nh{os.getpid()}", "numrxqueues", 1, "numtxqueues", 1) as link:
        router = start(make_router, link, 1)
        local = f"{scheme}://{link.devices[1]}"
        router.namehop("face", "create", link.uri(0), "--local", local, "--persistency", "permanent")
        on_port = ["--link", link.uri(1), "--local", f"{scheme}://{link.devices[0]}"]
        places = {side: (on_port, link.inside(0)), ("producer" if side == "consumer" else "consumer"): ([], ())}
        if side == "producer":
            router.namehop("route", "add", LOAD, link.uri(0))
        options, prefix = places["producer"]
        producer = spawn("producer", LOAD, "--payload", 5000, *options, prefix=prefix, transport=router.unix_uri)
        try:
            options, prefix = places["consumer"]
            wait_for_producer(*options, prefix=prefix, transport=router.unix_uri)
            asking = spawn("consumer", LOAD, "--window", 16, "--count", 500, *options, prefix=prefix, transport=router.unix_uri)
            consumer = consumed(report_of(asking))
        finally:
            producer.send_signal(signal.SIGINT)
        served = produced(report_of(producer))
    # The kernel may drop frames under load. The Interests then time out and are counted.
    assert consumer["data"] >= 450, consumer
    frames = {"consumer": consumer["link"]["frames_received"], "producer": served["link"]["frames_sent"]}
    assert frames[side] >= 4 * 450, (consumer, served)


@pytest.mark.parametrize("limits", [["--loss", "3%"], ["--loss", "1%", "--duplicate", "2%", "--reorder", "2%"]], ids=["loss", "all"])
def test_every_packet_is_accounted_for_on_a_bad_link(make_router, limits):
    router = make_router()
    producer = spawn("producer", LOAD, "--payload", 500, transport=router.unix_uri)
    command = [PROGRAM, "traffic", "relay", "--to", f"127.0.0.1:{router.udp}", "--json", *limits]
    relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = relay.stderr.readline().split()[2]
        wait_for_producer(transport=router.unix_uri)
        asking = spawn("consumer", LOAD, "--window", 16, "--count", 1500, "--lifetime", "500ms", transport=f"udp4://{address}")
        consumer = consumed(report_of(asking))
    finally:
        for process in (producer, relay):
            process.send_signal(signal.SIGINT)
    served, ways = produced(report_of(producer)), report_of(relay)
    line, forth, back = consumer["link"], ways["forth"], ways["back"]
    for way in ways.values():
        gone = way["lost"] + way["queue_full"] + way["refused"] + way["strangers"]
        assert way["received"] + way["duplicated"] == way["carried"] + gone + way["on_the_way"], ways
        assert way["lost"] > 0, ways
    # From end to end: the next hop has received every frame, or has counted it as lost.
    assert forth["received"] + forth["overrun"] == line["frames_sent"], (consumer, ways)
    came = line["frames_received"] + line["receive_losses"].get("kernel-queue-full", 0)
    assert came == back["carried"], (consumer, ways)
    kinds = ("data", "nacks", "duplicates", "late", "unsolicited", "malformed")
    assert line["frames_received"] == sum(consumer[kind] for kind in kinds), consumer
    assert 0 < consumer["data"] < 1500 and served["data"] >= consumer["data"]
    if "--duplicate" not in limits:
        # Each Interest costs one packet in each direction, so each missing answer was lost in one of the two.
        assert consumer["timeouts"] - consumer["late"] == forth["lost"] + back["lost"], (consumer, ways)


@needs_root
def test_a_router_that_is_killed_leaves_a_full_account_over_memif(between_memifs, tmp_path):
    producer = spawn("producer", LOAD, "--link", memif(tmp_path, "producer"))
    link = ["--link", memif(tmp_path, "consumer")]
    wait_for_producer(*link)
    consumer = spawn("consumer", LOAD, *link, "--window", 64)
    wait_until(lambda: forwarded(between_memifs) > 500, what="packets flow")
    between_memifs.kill()
    ended = consumed(report_of(consumer, code=1))
    assert "memif peer disconnected" in ended["error"] and ended["data"] > 0, ended
    served = produced(report_of(producer, code=1))
    assert "memif peer" in served["error"] and served["data"] >= ended["data"], served


@pytest.mark.parametrize("transport", ["unix", "udp"])
def test_a_router_that_is_killed_leaves_a_full_account_over_sockets(make_router, transport):
    router = make_router()
    producer = spawn("producer", LOAD, transport=router.unix_uri)
    wait_for_producer(transport=router.unix_uri)
    pace = ["--rate", 2000, "--count", 4000, "--lifetime", "300ms"]
    consumer = spawn("consumer", LOAD, *pace, transport=router.uri(transport))
    wait_until(lambda: forwarded(router) > 500, what="packets flow")
    router.kill()
    # The Unix connection breaks. Datagrams are refused or lost.
    ended = consumed(report_of(consumer, code=1 if transport == "unix" else 0))
    assert ended["data"] > 0, ended
    if transport == "udp":
        assert ended["interests"] + ended["not_sent"] == 4000 and ended["timeouts"] > 0 and not ended["error"], ended
    produced(report_of(producer, code=1))


def forwarded(router):
    """Returns the number of Data packets that the router has sent."""
    return sum(face["out_data"] for face in router.json("face", "list"))


@needs_root
def test_links_that_cannot_be_say_why(tmp_path):
    def refused(*arguments, code):
        asking = subprocess.run([PROGRAM, "traffic", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
        assert asking.returncode == code, asking.stderr
        return asking.stderr

    assert "no-such-if0" in refused("consumer", LOAD, "--link", "ether://[02:00:00:00:00:01]", "--local", "dev://no-such-if0", code=1)
    assert "dev://INTERFACE" in refused("consumer", LOAD, "--link", "ether://[02:00:00:00:00:01]", code=2)
    assert "route add" in refused("producer", LOAD, "--link", memif(tmp_path, "x"), "--control", "unix:///x", code=2)
    waiting = spawn("consumer", LOAD, "--link", memif(tmp_path, "nobody", "server"))
    wait_until(lambda: (tmp_path / "nobody.sock").exists(), what="the socket is there")
    waiting.send_signal(signal.SIGINT)
    _, error = waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 1 and "namehop face create" in error, error


@needs_root
def test_memif_consumers_that_come_back(between_memifs, tmp_path):
    """A consumer that reconnects gets Data as soon as it sends Interests, before the router polls its links again."""
    producer = spawn("producer", LOAD, "--link", memif(tmp_path, "producer"), "--payload", 100)
    try:
        link = ["--link", memif(tmp_path, "consumer")]
        wait_for_producer(*link)
        short = ["--count", 100, "--window", 64, "--lifetime", "300ms"]
        answered = [consumed(report_of(spawn("consumer", LOAD, *link, *short)))["data"] for _ in range(40)]
    finally:
        producer.send_signal(signal.SIGINT)
    report_of(producer)
    assert answered == [100] * 40
