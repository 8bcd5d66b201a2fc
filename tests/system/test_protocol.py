"""Protocol choices that applications and operators can observe, one test for each row of docs/protocol-choices.md."""

import os
import socket
import subprocess
import time

import pytest
from applications import connect_application
from conftest import wait_until
from packets import command, data, interest, read_element, register, status, tlv
from port_links import ip

FACE_ID, PERSISTENCY = 0x69, 0x85


def answer(connection, module, verb, parameters):
    """Returns status code and text of the response to a command."""
    connection.sendall(command(module, verb, parameters))
    return status(read_element(connection)[1])


def number(kind, value):
    return tlv(kind, value.to_bytes(8, "big"))


def is_asked(consumer, producers, uri):
    """Sends an Interest and returns the index of the producer that receives it. That producer answers."""
    consumer.sendall(interest(uri, nonce=os.urandom(4)))
    (asked,) = wait_until(lambda: [index for index, producer in enumerate(producers) if has_something(producer)], 5, uri)
    read_element(producers[asked])
    producers[asked].sendall(data(uri))
    read_element(consumer)
    return asked


def has_something(connection):
    connection.settimeout(0.01)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        connection.settimeout(5)


def test_next_hops_of_equal_cost(router):
    (older, older_face), (younger, younger_face) = connect_application(router), connect_application(router)
    producers, consumer = [older, younger], router.connect()
    assert older_face < younger_face
    for name, face in [("/deep", older_face), ("/deep/er", younger_face), ("/age", younger_face), ("/age", older_face)]:
        assert answer(consumer, "rib", "register", register(name, face))[0] == 200
    assert is_asked(consumer, producers, "/deep/er/1") == 1, "an own route before one that is inherited"
    assert is_asked(consumer, producers, "/deep/2") == 0
    assert is_asked(consumer, producers, "/age/1") == 1, "then the older one, whatever the numbers of the faces are"


def test_the_expiration_of_a_face_follows_its_persistency_at_once(router):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(5)
        peer.connect(("127.0.0.1", router.udp))
        peer.send(interest("/nobody"))
        peer.recv(9000)
        uri = f"udp4://127.0.0.1:{peer.getsockname()[1]}"
        expiration = lambda: next(face["expiration_ms"] for face in router.json("face", "list") if face["remote_uri"] == uri)
        (face,) = [face["face_id"] for face in router.json("face", "list") if face["remote_uri"] == uri]
        assert expiration() > 0
        application = router.connect()
        for persistency, expires in [(0, False), (1, True), (2, False)]:
            parameters = number(FACE_ID, face) + number(PERSISTENCY, persistency)
            assert answer(application, "faces", "update", parameters)[0] == 200
            assert bool(expiration()) == expires, persistency


def test_destroying_no_face(router):
    application = router.connect()
    for face, code in [(0, 400), (60_000, 200)]:
        assert answer(application, "faces", "destroy", number(FACE_ID, face))[0] == code, face


def test_commands_of_the_same_time_are_told_apart(router, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    application, face = connect_application(router)
    for name in ["/first", "/second"]:
        assert answer(application, "rib", "register", register(name, face))[0] == 200
    prefixes = {route["prefix"] for route in router.json("route", "list")}
    assert {"/first", "/second"} <= prefixes


def test_the_list_of_faces_has_the_internal_one_and_no_pseudo_faces(router):
    application = router.connect()
    uris = {face["face_id"]: face["remote_uri"] for face in router.json("face", "list")}
    assert uris[1] == "internal://"
    assert not {254, 255} & set(uris) and not {"contentstore://", "null://"} & set(uris.values())
    application.close()


# The response to an Interest without a next hop, by strategy.
@pytest.mark.parametrize("strategy, is_refused", [("best-route", True), ("access", True), ("asf", True), ("multicast", False)])
def test_interests_without_next_hop(router, strategy, is_refused):
    router.namehop("strategy", "set", "/", strategy)
    application = router.connect()
    application.sendall(interest("/nowhere", lifetime=100))
    application.settimeout(1)
    if is_refused:
        assert read_element(application)[0] == 0x64, "a Nack"
    else:
        with pytest.raises(TimeoutError):
            read_element(application)


def test_multicast_faces_are_ad_hoc_where_the_configuration_says_so(make_router):
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    namespace = f"adhoc-{os.getpid()}"
    try:
        try:
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "add", "air0", "type", "veth", "peer", "name", "air1")
            ip("-n", namespace, "address", "add", "192.0.2.1/24", "dev", "air0")
            for device in ["air0", "air1"]:
                ip("-n", namespace, "link", "set", device, "up")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"cannot make network namespaces: {error}")
        for setting, expected in [("true", "ad-hoc"), ("false", "multi-access")]:
            router = make_router(f'[faces.multicast]\ninterfaces = ["air0"]\nad_hoc = {setting}\n', f"router-{setting}", start=False)
            router.prefix = ["ip", "netns", "exec", namespace]
            router.start()
            links = [face["link_type"] for face in router.json("face", "list") if "224.0.23.170" in face["remote_uri"]]
            assert links == [expected]
            router.stop()
    finally:
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)
