"""The second tier of the Content Store, with real routers, files, and file systems that are full or freeze."""

import hashlib
import os
import random
import select
import subprocess
import time
from contextlib import contextmanager

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from packets import command, data, elements, interest, name, read_element, register, split_element, status, tlv

DATA, INTEREST, LINK_PACKET, FRAGMENT, NACK = 6, 5, 0x64, 0x50, 0x320
# Packets that memory has room for, and bytes of content.
IN_MEMORY, CONTENT = 20, 4_000
# Interests that wait for an answer at a time.
WINDOW = 64
KILLS = 100

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems")


def configuration(path, size="16 MiB", keep=True):
    return f"""
[content_store]
capacity_packets = {IN_MEMORY}
[content_store.disk]
path = "{path}"
capacity_bytes = "{size}"
keep = {str(keep).lower()}
read_timeout_ms = 10000
"""


def content_of(uri, version):
    """Every byte depends on name and version, so that nothing torn or mixed passes for it."""
    head = f"{uri} {version} ".encode()
    pattern = hashlib.sha256(head).digest()
    return (head + pattern * (CONTENT // len(pattern)))[:CONTENT]


def version_of(packet):
    """The version of Data whose content is right for its name; anything else fails the test."""
    fields = elements(elements(packet)[DATA])
    parts, rest = [], fields[7]
    while rest:
        _, element, rest = split_element(rest)
        parts.append(element[2:].decode())
    uri = "/" + "/".join(parts)
    version = int(fields[0x15].split(b" ", 2)[1])
    assert fields[0x15] == content_of(uri, version), f"wrong Data for {uri}"
    return uri, version


class Application:
    """A raw connection with what is left over from reading."""

    def __init__(self, router):
        self.connection, self.kept = router.connect(), b""

    def read(self):
        kind, element, self.kept = read_element(self.connection, self.kept)
        return kind, element

    def buffered(self):
        """The next element that was received already, if it is complete."""
        parsed = split_element(self.kept)
        if not parsed:
            return None
        self.kept = parsed[2]
        fields = elements(elements(parsed[1])[LINK_PACKET]) if parsed[0] == LINK_PACKET else {}
        # A Nack stays as it is.
        return parsed if not fields or NACK in fields else split_element(fields[FRAGMENT])

    def receive(self):
        self.kept += self.connection.recv(1 << 20)

    def command(self, verb, parameters):
        self.connection.sendall(command("rib", verb, parameters))
        _, element = self.read()
        assert status(element)[0] == 200, element
        return self

    def produce(self, prefix):
        return self.command("register", register(prefix, 0))

    def end_producing(self, prefix):
        integers = ((0x69, 0), (0x6F, 255))
        return self.command("unregister", name(prefix) + b"".join(tlv(kind, value.to_bytes(8, "big")) for kind, value in integers))


def fetch(router, names, version=None):
    """Asks for names, with a producer of this version or without one. Gives the versions that came, by name, and how many the
    producer was asked for."""
    consumer = Application(router)
    producer = Application(router).produce("/k") if version is not None else None
    waiting, names = 0, list(names)
    todo, found, asked = iter(names), {}, 0
    answered = 0
    applications = [application for application in (consumer, producer) if application]
    while answered < len(names):
        while waiting < WINDOW and (uri := next(todo, None)):
            consumer.connection.sendall(interest(uri, nonce=os.urandom(4)))
            waiting += 1
        ready, _, _ = select.select([application.connection for application in applications], [], [], PATIENCE)
        assert ready, f"{answered} of {len(names)} were answered; {disk(router)}"
        for application in applications:
            if application.connection in ready:
                application.receive()
            while parsed := application.buffered():
                kind, element, _ = parsed
                if kind == INTEREST:
                    asked += 1
                    uri = uri_of_interest(element)
                    application.connection.sendall(data(uri, content_of(uri, version)))
                else:
                    waiting, answered = waiting - 1, answered + 1
                    if kind == DATA:
                        uri, its_version = version_of(element)
                        found[uri] = its_version
    if producer:
        producer.end_producing("/k")
    for application in applications:
        application.connection.close()
    return found, asked


def uri_of_interest(packet):
    rest, parts = elements(elements(packet)[INTEREST])[7], []
    while rest:
        _, element, rest = split_element(rest)
        parts.append(element[2:].decode())
    return "/" + "/".join(parts)


def names(count, first=0):
    return [f"/k/{number}" for number in range(first, first + count)]


def disk(router):
    return router.json("cs", "info")["disk"]


def wait_for_state(router, state):
    wait_until(lambda: disk(router)["state"] == state, what=f"the disk is {state}")


@contextmanager
def loop_device(image, size=24 << 20):
    """A block device whose bytes are those of a file."""
    if not image.exists():
        with open(image, "wb") as opened:
            opened.truncate(size)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def freezable(tmp_path):
    """A file system of its own, with functions that freeze it and end that."""
    image = tmp_path / "image"
    with open(image, "wb") as opened:
        opened.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with mounted(tmp_path / "slow", "-o", "loop", image) as folder:
        is_frozen = False

        def freeze(wanted):
            nonlocal is_frozen
            if wanted != is_frozen:
                subprocess.run(["fsfreeze", "--freeze" if wanted else "--unfreeze", str(folder)], check=True)
                is_frozen = wanted

        try:
            yield folder, freeze
        finally:
            freeze(False)


@contextmanager
def mounted(folder, *arguments):
    folder.mkdir()
    subprocess.run(["mount", *map(str, arguments), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


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
    # Erasing reaches the disk, and a restart does not bring it back.
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
        # What is there from before: each answer is checked, and names that are new lead to writes.
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

    # While the router runs, and before it starts.
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
        (letter, "16 MiB", "holds something else and is left as it is; name another file"),
        (tmp_path / "no/cache", "16 MiB", "there is no directory for"),
        (tmp_path, "16 MiB", "neither a file nor a block device"),
        (file, "16 MiB", "in use, by another router"),
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
    with pytest.raises(AssertionError, match="set capacity_bytes to that"):
        other_size.start()


@needs_root
def test_a_full_file_system_leaves_the_cache_in_memory_until_there_is_room(make_router, tmp_path):
    with mounted(tmp_path / "full", "-t", "tmpfs", "-o", "size=4m", "none") as folder:
        router = make_router(configuration(folder / "cache"))
        wait_for_state(router, "failed")
        assert "make room, or lower capacity_bytes" in router.log.read_text()
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
        # Another thread writes the log.
        wait_until(lambda: "the disk answers again" in router.log.read_text(), what="the log tells of the end")
        assert "the disk has not answered" in router.log.read_text()
        assert len(fetch(router, names(100))[0]) >= 100 - IN_MEMORY
        router.stop()


@needs_root
def test_a_router_starts_although_its_disk_does_not_answer(make_router, tmp_path):
    with freezable(tmp_path) as (folder, freeze):
        router = make_router(configuration(folder / "cache"), start=False)
        freeze(True)
        router.start()
        assert disk(router)["state"] == "stalled" and "the disk does not answer" in router.log.read_text()
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
        # Nothing tells the disk before the process has ended, whose last threads wait for the disk.
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


@needs_root
def test_a_block_device_is_used_and_survives_a_restart(make_router, tmp_path):
    with loop_device(tmp_path / "image") as device:
        shown = subprocess.run([PROGRAM, "cs", "format", device], capture_output=True, text=True)
        assert shown.returncode == 0 and "holds nothing" in shown.stdout
        router = make_router(configuration(device))
        wait_for_state(router, "working")
        fetch(router, names(200), 1)
        # A device takes longer to write than a file, so not all that left memory may be there.
        stored = disk(router)["stored"]
        assert stored >= IN_MEMORY and len(fetch(router, names(200))[0]) >= stored
        # It is in use: neither a second router nor somebody who wants to make it empty gets it.
        refused = subprocess.run([PROGRAM, "cs", "format", device, "--yes"], capture_output=True, text=True)
        assert refused.returncode == 1 and "in use" in refused.stderr
        router.stop()
        router.start()
        wait_for_state(router, "working")
        assert len(fetch(router, names(200))[0]) >= stored
        router.stop()
        router.extra = configuration(device, size="64 MiB")
        with pytest.raises(AssertionError, match="has room for"):
            router.start()


@needs_root
def test_a_device_with_a_file_system_is_left_alone_until_somebody_asks(make_router, tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as opened:
        opened.truncate(24 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    before = image.read_bytes()
    with loop_device(image) as device:
        router = make_router(configuration(device), start=False)
        for keep in (True, False):
            router.extra = configuration(device, keep=keep)
            with pytest.raises(AssertionError, match="holds an ext2, ext3 or ext4 file system and is left as it is"):
                router.start()
        looked = subprocess.run([PROGRAM, "cs", "format", device], capture_output=True, text=True)
        assert looked.returncode == 2 and "ext4 file system, and nothing was changed; --yes" in looked.stderr
        os.sync()
        assert image.read_bytes() == before
        with mounted(tmp_path / "used", device):
            for arguments in ([], ["--yes"]):
                used = subprocess.run([PROGRAM, "cs", "format", device, *arguments], capture_output=True, text=True)
                assert used.returncode == 1 and "in use" in used.stderr
        made = subprocess.run([PROGRAM, "cs", "format", device, "--yes"], capture_output=True, text=True)
        assert made.returncode == 0 and "is empty now" in made.stdout
        router.start()
        wait_for_state(router, "working")
        fetch(router, names(50), 1)
        assert len(fetch(router, names(50))[0]) >= 50 - IN_MEMORY
        router.stop()
    file = subprocess.run([PROGRAM, "cs", "format", str(image)], capture_output=True, text=True)
    assert file.returncode == 1 and "is no block device" in file.stderr


@needs_root
def test_a_disk_with_faults_serves_from_memory_until_it_works_again(make_router, tmp_path):
    """A device that answers every request with an error, as one does that is pulled out."""
    table = f"0 {(24 << 20) // 512} "
    with loop_device(tmp_path / "image") as device:
        name = f"namehop-test-{os.getpid()}"
        made = subprocess.run(["dmsetup", "create", name], input=table + f"linear {device} 0", capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no device with faults can be made here: {made.stderr.strip()}")

        def become(target):
            subprocess.run(["dmsetup", "suspend", name], check=True)
            subprocess.run(["dmsetup", "reload", name], input=table + target, text=True, check=True)
            subprocess.run(["dmsetup", "resume", name], check=True)

        try:
            router = make_router(configuration(f"/dev/mapper/{name}"))
            wait_for_state(router, "working")
            fetch(router, names(100), 1)
            os.sync()
            become("error")
            subprocess.run(["sysctl", "-q", "vm.drop_caches=1"], check=False)
            assert len(fetch(router, names(100), 2)[0]) == 100
            wait_for_state(router, "failed")
            info = disk(router)
            assert info["errors"] > 0 and "the disk cache has failed" in router.log.read_text()
            assert fetch(router, names(60, 500), 3)[1] == 60
            become(f"linear {device} 0")
            wait_until(lambda: disk(router)["state"] == "working", what="it works again", seconds=40)
            assert "the disk cache works again" in router.log.read_text()
            fetch(router, names(60, 900), 4)
            assert len(fetch(router, names(60, 900))[0]) >= 60 - IN_MEMORY
            router.stop()
        finally:
            subprocess.run(["dmsetup", "remove", "--retry", name], check=False)
