"""Every change with a response of 200 survives, whatever the disk does. A change that cannot be saved is refused and has no effect."""

import os
import random
import shutil
import subprocess
import threading

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from packets import command, name, read_element, register, status, tlv

PEER = "udp4://127.0.0.1:7009"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


class Disk:
    """A small tmpfs."""

    def __init__(self, folder):
        self.folder = folder

    def mount(self, *options):
        subprocess.run(["mount", *options, "-t", "tmpfs", "-o", "size=256k", "namehop-test", str(self.folder)], check=True, capture_output=True)

    def remount(self, how):
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], check=True, capture_output=True)

    def fill(self, leave=0):
        """Fills the file system, except for this number of pages."""
        with open(self.folder / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
            filler.truncate(os.fstat(filler.fileno()).st_size - leave * 4096)

    def empty(self):
        (self.folder / "filler").unlink()


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = Disk(folder)
    try:
        disk.mount()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"cannot mount: {error.stderr}")
    yield disk
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def with_state(make_router, disk):
    return make_router(f'[state]\nfile = "{disk.folder / "state.json"}"\n')


def static_routes(router):
    return {route["prefix"]: route["cost"] for route in router.json("route", "list") if route["origin"] == "static"}


def permanent_face(router):
    return router.json("face", "create", PEER, "--persistency", "permanent")["face_id"]


def send_commands(router, commands):
    """Sends commands one after the other. Returns (code, text) of each response."""
    with router.connect() as connection:
        answers = []
        for request in commands:
            connection.sendall(request)
            _, packet, _ = read_element(connection)
            answers.append(status(packet))
    return answers


def mtu_of(faces, wanted):
    return next(face["mtu_bytes"] for face in faces if face["face_id"] == wanted)


def router_strategy(router, verb, prefix):
    """Sets or unsets a strategy. Returns the status code."""
    strategy = tlv(0x6B, name("/localhost/nfd/strategy/multicast")) if verb == "set" else b""
    return send_commands(router, [command("strategy-choice", verb, name(prefix) + strategy)])[0][0]


def long_prefix(number):
    return f"/long/{number}/" + "x" * 200


@needs_root
def test_a_full_disk_refuses_what_it_cannot_keep(make_router, disk):
    router = with_state(make_router, disk)
    face = permanent_face(router)
    for number in range(200, 300):
        router_strategy(router, "set", f"/{number}")
    disk.fill(leave=2)
    answers = send_commands(router, [command("rib", "register", register(long_prefix(number), face, number)) for number in range(100)])
    kept = {long_prefix(number): number for number, (code, _) in enumerate(answers) if code == 200}
    assert 5 < len(kept) < 100
    code, text = answers[-1]
    assert code == 500 and "could not be saved" in text and "No space left" in text
    assert static_routes(router) == kept, "refused and in effect"
    # The last page has room for a few of the shortest records.
    unset = 0
    while router_strategy(router, "unset", f"/{200 + unset}") == 200:
        unset += 1
    # Every other change that would be saved is refused too, and has no effect.
    strategies, faces, cache = router.json("strategy", "list"), router.json("face", "list"), router.json("cs", "info")["capacity_packets"]
    for arguments in [
        ("face", "create", "udp4://127.0.0.1:7010", "--persistency", "permanent"),
        ("face", "update", face, "--mtu", "1300"),
        ("face", "destroy", face),
        ("route", "remove", long_prefix(0), face),
        ("strategy", "set", "/new", "multicast"),
        ("cs", "config", "--capacity", "77"),
    ]:
        refused = router.namehop(*arguments, check=False)
        assert refused.returncode != 0 and "could not be saved" in refused.stderr, arguments
    assert router.json("strategy", "list") == strategies
    assert [f["face_id"] for f in router.json("face", "list") if f["remote_uri"].startswith("udp4")] == [face]
    assert mtu_of(router.json("face", "list"), face) == mtu_of(faces, face)
    assert router.json("cs", "info")["capacity_packets"] == cache
    # Changes that are not saved work.
    router.namehop("face", "create", "udp4://127.0.0.1:7011")
    router.namehop("route", "add", "/app", "udp4://127.0.0.1:7011", "--origin", "app")
    router.namehop("face", "destroy", "udp4://127.0.0.1:7011")

    # Killed and restarted while the disk is still full.
    router.kill()
    router.start()
    assert static_routes(router) == kept
    assert sorted(file.name for file in disk.folder.iterdir()) == ["filler", "state.json", "state.json.api-token", "state.json.faulty-strategies", "state.json.lock"]
    assert "until their changes can be saved" in router.log.read_text()
    face = next(f["face_id"] for f in router.json("face", "list") if f["remote_uri"] == PEER)
    refused = send_commands(router, [command("rib", "register", register(long_prefix(1000), face))])
    assert refused[-1][0] == 500

    # Changes work again as soon as the disk has room.
    disk.empty()
    answers = send_commands(router, [command("rib", "register", register(f"/more/{number}", face)) for number in range(100)])
    assert {code for code, _ in answers} == {200}
    router.kill()
    router.start()
    assert len(static_routes(router)) >= len(kept) + 100


@needs_root
def test_a_disk_that_became_read_only_still_starts_the_router(make_router, disk):
    router = with_state(make_router, disk)
    router.namehop("route", "add", "/kept", permanent_face(router), "--cost", "3")
    router.stop()
    disk.remount("ro")
    for locked in (True, False):
        router.start()
        assert static_routes(router) == {"/kept": 3}
        refused = router.namehop("route", "add", "/new", PEER, check=False)
        assert refused.returncode != 0 and "Read-only file system" in refused.stderr
        # The lock still keeps a second router away.
        second = make_router(router.extra, name=f"second{locked}", start=False)
        second.write_config()
        assert "in use by another router" in run_to_end(second)
        router.stop()
        if locked:
            disk.remount("rw")
            (disk.folder / "state.json.lock").unlink()
            disk.remount("ro")
    router.start()
    disk.remount("rw")
    router.namehop("route", "add", "/new", PEER)
    router.kill()
    router.start()
    assert static_routes(router) == {"/kept": 3, "/new": 0}
    assert sorted(file.name for file in disk.folder.iterdir()) == ["state.json", "state.json.api-token", "state.json.faulty-strategies", "state.json.lock"]


@needs_root
def test_a_full_or_read_only_disk_without_a_state_file_starts_the_router(make_router, disk):
    """The state file, or its folder, was deleted, and the router was killed before it could write the file again."""
    router = with_state(make_router, disk)
    folder = disk.folder / "sub"
    router.extra = router.extra.replace(str(disk.folder), str(folder))
    router.stop()
    for obstacle in ("full", "read-only"):
        for what_is_left in ("folder", "nothing"):
            if folder.exists():
                shutil.rmtree(folder)
            if what_is_left == "folder":
                folder.mkdir()
            disk.fill() if obstacle == "full" else disk.remount("ro")
            router.start()
            refused = router.namehop("route", "add", "/new", PEER, check=False)
            assert refused.returncode != 0 and "could not be saved" in refused.stderr, (obstacle, what_is_left)
            router.namehop("route", "add", "/app", PEER, "--origin", "app")
            disk.empty() if obstacle == "full" else disk.remount("rw")
            router.namehop("route", "add", "/new", PEER)
            router.kill()
            router.start()
            assert static_routes(router) == {"/new": 0}
            router.stop()


@needs_root
def test_a_state_that_appears_later_is_not_overwritten(make_router, disk):
    """The disk with the state was not mounted when the router started."""
    router = with_state(make_router, disk)
    router.namehop("route", "add", "/kept", PEER)
    router.stop()
    good = (disk.folder / "state.json").read_bytes()
    (disk.folder / "state.json").unlink()
    disk.fill()
    router.start()
    disk.empty()
    (disk.folder / "state.json").write_bytes(good)
    refused = router.namehop("route", "add", "/new", PEER, check=False)
    assert refused.returncode != 0 and "restart the router" in refused.stderr
    router.stop()
    router.start()
    assert static_routes(router) == {"/kept": 0}


def run_to_end(router):
    ended = subprocess.run([PROGRAM, "run", "--config", str(router.config)], capture_output=True, text=True, timeout=PATIENCE, cwd=router.folder)
    assert ended.returncode == 1
    return ended.stderr


def test_a_deleted_state_file_comes_back(make_router):
    router = make_router()
    face = permanent_face(router)
    router.namehop("route", "add", "/a", face)
    (router.folder / "state.json").unlink()
    router.namehop("route", "add", "/b", face)
    router.kill()
    router.start()
    assert set(static_routes(router)) == {"/a", "/b"}


def test_a_deleted_state_folder_comes_back_without_a_further_change(make_router):
    router = make_router('[state]\nfile = "sub/state.json"\n')
    router.namehop("route", "add", "/a", permanent_face(router))
    folder = router.folder / "sub"
    shutil.rmtree(folder)
    router.stop()
    router.start()
    assert static_routes(router) == {"/a": 0}, "written again when the router ended"
    shutil.rmtree(folder)
    wait_until((folder / "state.json").exists, 15, "written again by itself")
    router.kill()
    router.start()
    assert static_routes(router) == {"/a": 0}


def test_what_was_answered_survives_a_kill_amid_commands(make_router):
    router = make_router()
    permanent_face(router)
    expected, number = {}, 0
    for _ in range(5):
        face = next(f["face_id"] for f in router.json("face", "list") if f["remote_uri"] == PEER)
        # Kill the router some commands later, at a random moment.
        last, killer = number + random.randrange(5, 40), threading.Timer(random.uniform(0, 0.01), router.process.kill)
        under_way = None
        with router.connect() as connection:
            try:
                while True:
                    if number == last:
                        killer.start()
                    under_way = f"/amid/{number}"
                    connection.sendall(command("rib", "register", register(under_way, face, number)))
                    _, packet, _ = read_element(connection)
                    assert status(packet)[0] == 200
                    expected[under_way] = number
                    number += 1
            except (EOFError, OSError):
                pass
        killer.join()
        router.process.wait(PATIENCE)
        router.start()
        found = static_routes(router)
        # The command without a response may or may not have taken effect.
        assert expected.items() <= found.items()
        assert found.keys() - expected.keys() <= {under_way}
        expected = found
        number += 1
    assert len(expected) > 10
    wait_until(lambda: not list(router.folder.glob("*.new")), what="no temporary files")


def test_xdg_state_home_has_the_state_and_a_restart_says_so(make_router, tmp_path):
    """Also for root, so that the routes of one experiment do not come back in the next."""
    router = make_router("[state]\nenabled = true\n", start=False)
    router.prefix = ["env", "--unset=STATE_DIRECTORY", f"XDG_STATE_HOME={tmp_path}/first"]
    router.start()
    face = router.json("face", "create", PEER, "--persistency", "permanent")["face_id"]
    router.namehop("route", "add", "/kept", face)
    assert (tmp_path / "first/namehop/state.json").is_file()
    router.stop()
    router.start()
    lines = [line.split() for line in router.log.read_text().splitlines()]
    (restored,) = [line for line in lines if line[:1] == ["restored"]]
    assert f"{tmp_path}/first/namehop/state.json" in " ".join(restored)
    router.stop()
    router.prefix[2] = f"XDG_STATE_HOME={tmp_path}/second"
    router.start()
    assert "/kept" not in router.namehop("route", "list").stdout
