"""The second tier of the Content Store in files, with real routers, and on file systems that are full or frozen."""

import os
import random
import select
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from disk_tier import (
    Application,
    DATA,
    IN_MEMORY,
    INTEREST,
    KILLS,
    configuration,
    content_of,
    disk,
    fetch,
    freezable,
    mounted,
    names,
    needs_root,
    uri_of_interest,
    version_of,
    wait_for_state,
)
from packets import data, interest


@pytest.mark.parametrize("workers", [1, 2])
def test_what_left_memory_is_found_again_and_survives_a_restart(make_router, tmp_path, workers):
    file = tmp_path / "cache"
    router = make_router(configuration(file))
    wait_for_state(router, "working")
    assert file.stat().st_mode & 0o777 == 0o600
    assert fetch(router, names(200), 1) == ({uri: 1 for uri in names(200)}, 200)
    found, asked = fetch(router, names(200), 2)
    assert asked <= 2 * IN_MEMORY and len(found) == 200, "what was in memory last may be on its way to the disk"
    info = disk(router)
    assert info["hits"] >= 150 and info["stored"] >= 180 and info["errors"] == info["checksum_failures"] == 0
    assert router.json("status")["cs_disk"]["state"] == "working"
    assert "CS on disk" in (shown := router.namehop("status").stdout) and "working, " in shown
    metrics = subprocess.run(["curl", "-s", f"http://127.0.0.1:{router.metrics}/metrics"], capture_output=True, text=True).stdout
    assert f'namehop_cs_disk_hits_total {info["hits"]}' in metrics and 'namehop_cs_disk_state{state="working"} 1' in metrics
    router.stop()
    router.workers = 3 - workers
    router.start()
    wait_for_state(router, "working")
    found, _ = fetch(router, names(200))
    assert len(found) >= 200 - 2 * IN_MEMORY, "names are found by their new owners"
    # Erasing also erases from the disk, and a restart does not restore the Data.
    router.namehop("cs", "erase", "/k/1")
    router.namehop("cs", "erase", "/k")
    assert fetch(router, names(200)) == ({}, 0)
    router.stop()
    router.start()
    wait_for_state(router, "working")
    assert fetch(router, names(200)) == ({}, 0)
    router.stop()
    router.extra = configuration(file, keep=False)
    router.start()
    assert fetch(router, names(50), 3)[1] == 50


def test_no_wrong_data_after_a_hundred_kills_in_mid_write(make_router, tmp_path):
    file = tmp_path / "cache"
    router = make_router(configuration(file), start=False)
    source, survived = random.Random(1), 0
    for version in range(1, KILLS + 1):
        router.start()
        producer, consumer = Application(router).produce("/k"), Application(router)
        # Sample names that an earlier router wrote, to check each answer, and new names, to cause writes.
        uris = source.sample(names(400), 60) + names(20, 1_000 * version)
        end = time.monotonic() + source.uniform(0.02, 0.15)
        for uri in uris:
            consumer.connection.sendall(interest(uri, nonce=os.urandom(4)))
        while time.monotonic() < end:
            ready, _, _ = select.select([producer.connection, consumer.connection], [], [], 0.01)
            for application in (producer, consumer):
                if application.connection in ready:
                    application.receive()
                while parsed := application.buffered():
                    if parsed[0] == INTEREST:
                        uri = uri_of_interest(parsed[1])
                        application.connection.sendall(data(uri, content_of(uri, version)))
                    elif parsed[0] == DATA:
                        uri, its_version = version_of(parsed[1])
                        assert its_version <= version
                        survived += its_version < version
        router.kill()
        producer.connection.close()
        consumer.connection.close()
    assert survived > KILLS, "much was found that an earlier router had written"


def test_changed_bytes_are_never_served(make_router, tmp_path):
    file = tmp_path / "cache"
    router = make_router(configuration(file))
    wait_for_state(router, "working")
    fetch(router, names(300), 1)
    source = random.Random(2)

    def spoil(count):
        with open(file, "r+b") as opened:
            for _ in range(count):
                opened.seek(source.randrange(4096, 4096 + 300 * 5 * 1024))
                opened.write(source.randbytes(1))

    # Change bytes while the router runs, and again before it starts.
    spoil(200)
    found, _ = fetch(router, names(300))
    assert 0 < len(found) < 300 and disk(router)["checksum_failures"] > 0
    router.stop()
    spoil(200)
    router.start()
    wait_for_state(router, "working")
    assert 0 < len(fetch(router, names(300))[0]) < len(found)


def test_what_cannot_be_used_is_said_at_the_start_and_left_alone(make_router, tmp_path):
    file, letter = tmp_path / "cache", tmp_path / "letter"
    letter.write_text("Dear Sir")
    used = make_router(configuration(file))
    wait_for_state(used, "working")
    for path, size, words in [
        (letter, "16 MiB", "is not a disk cache and was not changed: choose another file"),
        (tmp_path / "no/cache", "16 MiB", "create it, or choose another file"),
        (tmp_path, "16 MiB", "neither a file nor a block device"),
        (file, "16 MiB", "in use by another router"),
        (tmp_path / "new", "1 MiB", "capacity_bytes"),
        (tmp_path / "new", "5000 GiB", "capacity_bytes"),
    ]:
        router = make_router(configuration(path, size), start=False)
        router.write_config()
        result = subprocess.run([PROGRAM, "run", "--config", str(router.config)], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode != 0 and words in result.stderr, (words, result.stderr)
    assert letter.read_text() == "Dear Sir" and not (tmp_path / "new").exists()
    used.stop()
    other_size = make_router(configuration(file, "32 MiB"), start=False)
    with pytest.raises(AssertionError, match="set capacity_bytes to this value"):
        other_size.start()


@needs_root
def test_a_full_file_system_leaves_the_cache_in_memory_until_there_is_room(make_router, tmp_path):
    with mounted(tmp_path / "full", "-t", "tmpfs", "-o", "size=4m", "none") as folder:
        router = make_router(configuration(folder / "cache"))
        wait_for_state(router, "failed")
        assert "free space, or lower capacity_bytes" in router.log.read_text()
        assert fetch(router, names(50), 1) == ({uri: 1 for uri in names(50)}, 50)
        assert fetch(router, names(50))[0], "memory goes on"
        assert disk(router)["not_stored"] >= 30
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        wait_for_state(router, "working")
        fetch(router, names(50), 2)
        assert len(fetch(router, names(50))[0]) >= 50 - IN_MEMORY
        router.stop()


@needs_root
def test_a_disk_that_stalls_holds_up_nobody(make_router, tmp_path):
    with freezable(tmp_path) as (folder, freeze):
        router = make_router(configuration(folder / "cache"))
        wait_for_state(router, "working")
        fetch(router, names(100), 1)
        freeze(True)
        end, slowest, version = time.monotonic() + 5, 0, 2
        while time.monotonic() < end:
            begun = time.monotonic()
            assert len(fetch(router, names(30, 1_000 * version), version)[0]) == 30
            slowest, version = max(slowest, time.monotonic() - begun), version + 1
        info = disk(router)
        freeze(False)
        assert info["state"] == "stalled" and info["stalls"] == 1 and info["not_stored"] > 0
        assert slowest < 2, f"30 packets took {slowest} s"
        wait_for_state(router, "working")
        # Another thread writes the log, so the line may appear later.
        wait_until(lambda: "the disk responds again" in router.log.read_text(), what="the log tells of the end")
        assert "the disk has not responded" in router.log.read_text()
        assert len(fetch(router, names(100))[0]) >= 100 - IN_MEMORY
        router.stop()


@needs_root
def test_a_router_starts_although_its_disk_does_not_answer(make_router, tmp_path):
    with freezable(tmp_path) as (folder, freeze):
        router = make_router(configuration(folder / "cache"), start=False)
        freeze(True)
        router.start()
        assert disk(router)["state"] == "stalled" and "the disk does not respond" in router.log.read_text()
        assert fetch(router, names(50), 1) == ({uri: 1 for uri in names(50)}, 50)
        freeze(False)
        wait_for_state(router, "working")
        fetch(router, names(50), 2)
        assert len(fetch(router, names(50))[0]) >= 50 - IN_MEMORY
        router.stop()


@needs_root
@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_erased_while_the_disk_stalled_does_not_come_back(make_router, tmp_path, workers):
    with freezable(tmp_path) as (folder, freeze):
        router = make_router(configuration(folder / "cache"))
        wait_for_state(router, "working")
        fetch(router, names(100), 1)
        wait_until(lambda: disk(router)["stored"] >= 80, what="the disk has them")
        freeze(True)
        router.namehop("cs", "erase", "/k/7")
        router.namehop("cs", "erase", "/k/1")
        assert disk(router)["erasing_workers"] > 0
        # The disk learns nothing of the erasure before the process ends. The process ends only when its last threads have finished waiting
        # for the disk.
        router.process.kill()
        time.sleep(0.2)
        freeze(False)
        router.process.wait(PATIENCE)
        router.workers = workers
        router.start()
        wait_for_state(router, "working")
        found, _ = fetch(router, names(100))
        assert not {"/k/1", "/k/7"} & found.keys() and len(found) >= 50
        wait_until(lambda: disk(router)["erasing_workers"] == 0, what="the disk knows it")
        router.stop()
        state = (router.folder / "state.json").read_text()
        assert "disk_erasures_written" in state or "disk_erasure" not in state
        router.start()
        wait_for_state(router, "working")
        assert not {"/k/1", "/k/7"} & fetch(router, names(100))[0].keys()
        router.stop()
