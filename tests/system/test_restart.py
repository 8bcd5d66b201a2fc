"""Settings made at run time survive a stop, and a kill -9 directly after the response."""

import pytest


def settings(router):
    faces = [(face["remote_uri"], face["persistency"], face["mtu_bytes"]) for face in router.json("face", "list") if face["remote_uri"].endswith(":7009")]
    names = {face["face_id"]: face["remote_uri"] for face in router.json("face", "list")}
    routes = sorted((route["prefix"], names[route["face_id"]], route["cost"]) for route in router.json("route", "list") if route["origin"] == "static")
    strategies = sorted((choice["prefix"], choice["strategy"]) for choice in router.json("strategy", "list"))
    cs = router.json("cs", "info")
    return faces, routes, strategies, (cs["capacity_packets"], cs["admit"], cs["serve"])


def change_everything(router):
    face = router.json("face", "create", "udp4://127.0.0.1:7009", "--persistency", "permanent", "--mtu", "1400")["face_id"]
    router.namehop("route", "add", "/kept", face, "--cost", "7")
    router.namehop("route", "add", "/gone", face)
    router.namehop("route", "remove", "/gone", face)
    router.namehop("strategy", "set", "/kept", "multicast")
    router.namehop("cs", "config", "--capacity", "4321", "--admit", "off")


@pytest.mark.parametrize("end, workers", [("stop", 1), ("kill", 1), ("kill", 2)])
def test_settings_survive(make_router, end):
    router = make_router()
    change_everything(router)
    before = settings(router)
    getattr(router, end)()
    router.start()
    assert settings(router) == before
    assert before[0] == [("udp4://127.0.0.1:7009", "permanent", 1400)]
    assert ("/kept", "udp4://127.0.0.1:7009", 7) in before[1] and "/gone" not in str(before[1])
    assert before[3] == (4321, False, True)
    # Undone settings stay undone.
    face = next(f["face_id"] for f in router.json("face", "list") if f["remote_uri"].endswith(":7009"))
    router.namehop("strategy", "unset", "/kept")
    router.namehop("face", "destroy", face)
    router.kill()
    router.start()
    faces, routes, strategies, _ = settings(router)
    assert not faces and "/kept" not in str(routes) and "/kept" not in str(strategies)


def test_a_face_that_is_no_longer_permanent_is_not_kept(make_router):
    router = make_router()
    uris = {"udp4://127.0.0.1:7009", "udp4://127.0.0.1:7010"}
    for uri in uris:
        face = router.json("face", "create", uri, "--persistency", "permanent")["face_id"]
        router.namehop("face", "update", face, "--persistency", "on-demand")
    # Also if the face is destroyed afterwards.
    router.namehop("face", "destroy", "udp4://127.0.0.1:7010")
    router.kill()
    router.start()
    assert not uris & {face["remote_uri"] for face in router.json("face", "list")}


def test_a_damaged_state_file_does_not_stop_the_router(make_router):
    router = make_router()
    change_everything(router)
    before = settings(router)
    router.kill()
    with open(router.folder / "state.json", "ab") as state:
        state.write(b'{"route":{"prefix":"/half')
    router.start()
    assert settings(router) == before
    assert "damaged" in router.log.read_text()
    router.kill()
    (router.folder / "state.json").write_bytes(b"\x00\xff not a state file")
    router.start()
    assert settings(router)[0] == []
    assert list(router.folder.glob("state.json.damaged-*"))


def test_what_the_configuration_names_is_there_and_not_saved(make_router):
    router = make_router(
        '[[face]]\nuri = "udp4://127.0.0.1:7009"\nmtu = 1200\n'
        '[[route]]\nprefix = "/configured"\nnexthop = "udp4://127.0.0.1:7009"\ncost = 3\n'
        '[[strategy]]\nprefix = "/configured"\nstrategy = "asf"\n'
    )
    faces, routes, strategies, _ = settings(router)
    assert faces == [("udp4://127.0.0.1:7009", "permanent", 1200)]
    assert ("/configured", "udp4://127.0.0.1:7009", 3) in routes
    assert "asf" in str(strategies)
    router.stop()
    router.extra = ""
    router.start()
    assert "/configured" not in str(settings(router))
