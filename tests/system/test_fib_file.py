"""FIB entries from a file: a text file, a snapshot, and faulty files."""

from conftest import wait_until

PEER = "udp4://127.0.0.1:7011"
OTHER = "udp4://127.0.0.1:7012"
PREFIXES = 20_000


def entries(router):
    return {
        entry["prefix"]: sorted((hop["remote_uri"] or "", hop["cost"]) for hop in entry["nexthops"])
        for entry in router.json("fib", "list")
        if entry["prefix"].startswith("/loaded")
    }


def wait_for(router, text):
    wait_until(lambda: text in router.log.read_text(), 60, text)


def test_text_snapshot_and_faults(make_router, tmp_path):
    text = tmp_path / "fib.txt"
    lines = [f"/loaded/{number} {PEER} {number % 50}" for number in range(PREFIXES)]
    text.write_text("# a comment\n" + "\n".join(lines) + f"\n/loaded/5 {OTHER} 99\n")
    router = make_router(f'[fib]\nfile = "{text}"\n')
    wait_for(router, "FIB entries loaded")
    loaded = entries(router)
    assert len(loaded) == PREFIXES
    assert loaded["/loaded/5"] == [(PEER, 5), (OTHER, 99)] and loaded["/loaded/77"] == [(PEER, 27)]

    # A snapshot holds the same entries and those added later. Loading it recreates the faces.
    router.namehop("route", "add", "/loaded/more", OTHER, "--cost", "3")
    snapshot = tmp_path / "fib.snapshot"
    assert "saved to" in router.namehop("fib", "save", snapshot).stdout
    assert snapshot.read_bytes().startswith(b"\x89NHFIB") and not list(tmp_path.glob("*.new"))
    expected = entries(router)
    router.stop()
    (router.folder / "state.json").unlink()
    router.log.write_text("")
    router.extra = f'[fib]\nfile = "{snapshot}"\n'
    router.start()
    wait_for(router, "FIB entries loaded")
    assert entries(router) == expected and "/loaded/more" in expected

    # Destroying a face removes its next hops.
    face = next(face["face_id"] for face in router.json("face", "list") if face["remote_uri"] == PEER)
    router.namehop("face", "destroy", face)
    wait_until(lambda: entries(router) == {"/loaded/5": [(OTHER, 99)], "/loaded/more": [(OTHER, 3)]}, 30, "all gone")
    router.stop()

    # A damaged file is reported, and the entries before the damage are loaded.
    router.log.write_text("")
    content = snapshot.read_bytes()
    snapshot.write_bytes(content[: len(content) // 2])
    router.start()
    wait_for(router, "only part of the FIB entries was loaded")
    assert "cut off" in router.log.read_text() and "fib save" in router.log.read_text()
    assert 0 < len(entries(router)) < PREFIXES
    router.stop()

    router.log.write_text("")
    text.write_text(f"/loaded/a {PEER}\n/loaded/b\n/loaded/c 9999\n/loaded/%zz {PEER}\n/loaded/d udp://nowhere\n/loaded/e {PEER} 1\n")
    router.extra = f'[fib]\nfile = "{text}"\n'
    router.start()
    wait_for(router, "FIB entries loaded")
    assert sorted(entries(router)) == ["/loaded/a", "/loaded/e"]
    log = router.log.read_text()
    assert all(f"{text}:{line}:" in log for line in (2, 3, 4, 5)), log


def test_a_file_that_is_not_there_is_told_before_anything_starts(make_router, tmp_path):
    router = make_router()
    router.stop()
    router.extra = f'[fib]\nfile = "{tmp_path / "none"}"\n'
    try:
        router.start()
    except AssertionError as error:
        assert "cannot read the FIB entries" in str(error)
    else:
        raise AssertionError("it started")
