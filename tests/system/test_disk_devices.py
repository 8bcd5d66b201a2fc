"""The second tier of the Content Store on block devices, and on faulty disks."""

import os
import subprocess

import pytest
from conftest import PROGRAM, wait_until
from disk_tier import IN_MEMORY, configuration, disk, fetch, loop_device, mounted, names, needs_root, wait_for_state


@needs_root
def test_a_block_device_is_used_and_survives_a_restart(make_router, tmp_path):
    with loop_device(tmp_path / "image") as device:
        shown = subprocess.run([PROGRAM, "cs", "format", device], capture_output=True, text=True)
        assert shown.returncode == 0 and "holds nothing" in shown.stdout
        router = make_router(configuration(device))
        wait_for_state(router, "working")
        fetch(router, names(200), 1)
        # A device writes more slowly than a file, so some of the evicted Data may not be stored.
        stored = disk(router)["stored"]
        assert stored >= IN_MEMORY and len(fetch(router, names(200))[0]) >= stored
        # The device is in use, so neither a second router nor `cs format` can take it.
        refused = subprocess.run([PROGRAM, "cs", "format", device, "--yes"], capture_output=True, text=True)
        assert refused.returncode == 1 and "in use" in refused.stderr
        router.stop()
        router.start()
        wait_for_state(router, "working")
        assert len(fetch(router, names(200))[0]) >= stored
        router.stop()
        router.extra = configuration(device, size="64 MiB")
        with pytest.raises(AssertionError, match="lower capacity_bytes to at most"):
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
            with pytest.raises(AssertionError, match="contains an ext2, ext3 or ext4 file system and was not changed"):
                router.start()
        looked = subprocess.run([PROGRAM, "cs", "format", device], capture_output=True, text=True)
        assert looked.returncode == 2 and "ext4 file system; nothing was changed: --yes" in looked.stderr
        os.sync()
        assert image.read_bytes() == before
        with mounted(tmp_path / "used", device):
            for arguments in ([], ["--yes"]):
                used = subprocess.run([PROGRAM, "cs", "format", device, *arguments], capture_output=True, text=True)
                assert used.returncode == 1 and "in use" in used.stderr
        made = subprocess.run([PROGRAM, "cs", "format", device, "--yes"], capture_output=True, text=True)
        assert made.returncode == 0 and "is empty;" in made.stdout
        router.start()
        wait_for_state(router, "working")
        fetch(router, names(50), 1)
        assert len(fetch(router, names(50))[0]) >= 50 - IN_MEMORY
        router.stop()
    file = subprocess.run([PROGRAM, "cs", "format", str(image)], capture_output=True, text=True)
    assert file.returncode == 1 and "is not a block device" in file.stderr


@needs_root
def test_a_disk_with_faults_serves_from_memory_until_it_works_again(make_router, tmp_path):
    """A device that answers every request with an error, as a device does that was unplugged."""
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
