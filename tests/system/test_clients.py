"""Unmodified applications of other authors: NDNts and python-ndn publish, fetch and register over every transport."""

import pytest
from applications import wait_for_route
from conftest import digest, wait_until

# Transport of the producer, transport of the consumer, and number of workers.
NDNTS_PATHS = [("unix", "unix", 1), ("tcp", "tcp", 1), ("ws", "ws", 1), ("unix", "udp", 2), ("tcp", "unix", 1), ("ws", "tcp", 4)]
PYTHON_PATHS = [("unix", "unix", 2), ("tcp", "tcp", 1), ("unix", "udp", 1)]


@pytest.mark.parametrize("producer, consumer, workers", NDNTS_PATHS)
def test_ndnts_to_ndnts(router, clients, content, tmp_path, producer, consumer):
    clients.start("ndnts", "serve", router.uri(producer), "/video/object", content)
    got = tmp_path / "got.bin"
    clients.run("ndnts", "fetch", router.uri(consumer), "/video/object", got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("producer, consumer, workers", PYTHON_PATHS)
def test_python_to_python(router, clients, content, tmp_path, producer, consumer):
    assert clients.start("python", "serve", router.uri(producer), "/video/object", content)["registered"]
    got = tmp_path / "got.bin"
    clients.run("python", "fetch", router.uri(consumer), "/video/object", got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("producer, consumer, workers", [("unix", "tcp", 2), ("ws", "unix", 1)])
def test_ndnts_to_python(router, clients, content, tmp_path, producer, consumer):
    """Producer and consumer use different libraries."""
    served = clients.start("ndnts", "serve", router.uri(producer), "/mixed/object", content)["serving"]
    got = tmp_path / "got.bin"
    clients.run("python", "fetch", router.uri(consumer), served.replace("8=", ""), got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("language", ["ndnts", "python"])
def test_producer_on_udp(router, clients, content, tmp_path, language):
    """The router treats a UDP peer as remote, and remote peers may not register: the operator adds the route."""
    port = clients.start(language, "serve", router.udp_uri, "/remote/object", content, "no-register")["port"]
    router.namehop("route", "add", "/remote", f"udp4://127.0.0.1:{port}")
    got = tmp_path / "got.bin"
    clients.run(language, "fetch", router.unix_uri, "/remote/object", got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("language", ["ndnts", "python"])
@pytest.mark.parametrize("transport", ["unix", "tcp", "udp"])
def test_no_route_is_a_nack(router, clients, language, transport):
    answers = clients.run(language, "consume", router.uri(transport), "/no/such/thing")
    assert {"result": "nack", "reason": 150} in answers


@pytest.mark.parametrize("language", ["ndnts", "python"])
def test_a_producer_that_leaves_takes_its_route_along(router, clients, content, language):
    clients.start(language, "serve", router.unix_uri, "/short/lived", content)
    wait_for_route(router, "/short/lived")
    clients.stop()
    wait_until(lambda: not any(r["prefix"] == "/short/lived" for r in router.json("route", "list")), what="route goes")


def by_verb(answers, verb):
    return [answer["code"] for answer in answers if answer.get("verb") == verb]


@pytest.mark.parametrize("workers", [1, 2])
def test_ndnts_management(router, clients):
    answers = clients.run("ndnts", "manage", router.unix_uri, "udp4://127.0.0.1:9")
    assert by_verb(answers, "faces/create") == [200, 409, 400]
    assert by_verb(answers, "faces/update") == [200, 404]
    assert by_verb(answers, "rib/register") == [200, 414]
    assert by_verb(answers, "strategy-choice/set") == [200, 404]
    assert by_verb(answers, "faces/destroy") == [200]
    facts = {}
    for answer in answers:
        for key, value in answer.items():
            facts.setdefault(key, []).append(value)
    face = answers[0]["faceId"]
    route = {"faceId": face, "origin": 255, "cost": 7, "flags": 1, "flagChildInherit": True, "flagCapture": False}
    before, after = facts["rib"]
    listed = {entry["name"]: entry["route"] for entry in before}
    assert {key: listed["/8=manage/8=a"][0][key] for key in ("faceId", "origin", "cost")} == {
        key: route[key] for key in ("faceId", "origin", "cost")
    }
    assert "/8=manage/8=a" not in {entry["name"] for entry in after}
    assert any(prefix == "/8=manage" and "multicast" in strategy for prefix, strategy in facts["strategies"][0])
    assert facts["cs"][0][0]["capacity"] == 1234
    assert facts["query"] == [[face], []]
    assert any(uri.startswith("unix://") for uri in facts["channels"][0])
    assert any(entry["faceId"] == face for entry in facts["faces"][0])


@pytest.mark.parametrize("workers", [1, 2])
def test_python_management_in_both_command_forms(router, clients):
    answers = clients.run("python", "manage", router.unix_uri, "udp4://127.0.0.1:9")
    for verb in ("faces/create", "rib/register", "strategy-choice/set", "rib/unregister", "faces/destroy"):
        assert by_verb(answers, verb) == [200, 200], verb
    ribs = [answer["rib"] for answer in answers if "rib" in answer]
    assert [rib[f"/python/{form}"][0][1:] for rib, form in zip(ribs, ("v0.3", "v0.2"))] == [[255, 9], [255, 9]]
    strategies = [answer["strategies"] for answer in answers if "strategies" in answer]
    assert all("/asf/" in choice[f"/python/{form}"] for choice, form in zip(strategies, ("v0.3", "v0.2")))
    assert any(uri.startswith("fd://") or uri.startswith("unix://") for _, uri in next(a["faces"] for a in answers if "faces" in a))
