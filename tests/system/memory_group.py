"""A control group with a memory limit, in the cgroup version (1 or 2) that has the memory controller on this host."""

import itertools
import os
import time
from pathlib import Path

import pytest

NUMBERS = itertools.count()


def hierarchy():
    """Returns the folder in which groups can be made, and the cgroup version. Skips the test if there is no such folder."""
    if os.geteuid() != 0:
        pytest.skip("making a control group needs root")
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    for _, folder, kind, options, *_ in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(folder), 1
    for _, folder, kind, *_ in mounts:
        if kind == "cgroup2" and "memory" in (Path(folder) / "cgroup.controllers").read_text().split():
            try:
                (Path(folder) / "cgroup.subtree_control").write_text("+memory")
            except OSError as error:
                pytest.skip(f"the memory controller cannot be used below {folder}: {error}")
            return Path(folder), 2
    pytest.skip("no mounted hierarchy of control groups has the memory controller")


class MemoryGroup:
    """A group with a memory limit. The kernel kills processes in the group if they exceed it."""

    def __init__(self, mebibytes):
        self.mebibytes = mebibytes

    def __enter__(self):
        parent, self.version = hierarchy()
        self.folder = parent / f"namehop-test-{os.getpid()}-{next(NUMBERS)}"
        self.folder.mkdir()
        limit = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.folder / limit).write_text(str(self.mebibytes << 20))
        if self.version == 2 and (self.folder / "memory.swap.max").exists():
            (self.folder / "memory.swap.max").write_text("0")
        return self

    def __exit__(self, *_):
        end = time.monotonic() + 10
        while True:
            try:
                return self.folder.rmdir()
            except OSError:
                # Processes of the group may take a moment to end.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def command(self):
        """Returns the command prefix that runs a command in the group."""
        return ["bash", "-c", 'echo $$ > "$0" && exec "$@"', str(self.folder / "cgroup.procs")]

    def peak_bytes(self):
        file = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return int((self.folder / file).read_text())

    def kills(self):
        """Returns how many processes of the group the kernel has killed because of the memory limit."""
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        words = (self.folder / file).read_text().split()
        return int(words[words.index("oom_kill") + 1])
