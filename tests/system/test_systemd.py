"""The service under its own systemd: process 1 of a container with a tmpfs root, the host's /usr read-only, and the program under test.
Outside the container only one control group is made, which is removed at the end.
"""

import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import PROGRAM, ROOT, wait_until
from container import Container
from test_strategies import SDK, compile_strategy

SYSTEMD = "/usr/lib/systemd/systemd"
PREFIX = "/opt/namehop"
# Targets whose wanted units are masked, because they would change what the container shares with the host: kernel settings, devices, the
# clock.
TARGETS = ("sysinit", "sockets", "local-fs", "multi-user", "timers", "basic", "graphical")
# The container's set-up script, run inside its namespaces. Arguments: the new root, the program, a folder of units.
ENTER = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 root "$1"
cd "$1"
mkdir -p usr etc/systemd/system proc sys dev run tmp var/log var/tmp var/lib home root opt/namehop/bin opt/namehop/lib/namehop .old
mount --bind /usr usr
mount -o remount,bind,ro usr
for link in bin sbin lib lib32 lib64; do [ ! -L /$link ] || cp -P /$link $link; done
cp /etc/ld.so.cache etc/
cp -rP /etc/alternatives etc/ 2>/dev/null || true
touch opt/namehop/bin/namehop
mount --bind "$2" opt/namehop/bin/namehop
shim=libnamehop_dpdk.so
touch opt/namehop/lib/namehop/$shim
mount --bind "$(dirname "$2")/$shim" opt/namehop/lib/namehop/$shim
printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' > etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' > etc/group
: > etc/machine-id
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s ../run var/run
mount -t tmpfs run run -o mode=755
mount -t tmpfs tmp tmp
cp -r "$3"/. etc/systemd/system/
ip link set lo up
ip link add eth1 type veth peer name far1
ip link set eth1 up
ip link set far1 up
pivot_root . .old
umount -l /.old
exec env -i container=test PATH=/usr/sbin:/usr/bin /usr/lib/systemd/systemd --unit=multi-user.target --log-target=journal
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a container needs root"),
    pytest.mark.skipif(not (Path(SYSTEMD).exists() and shutil.which("systemctl")), reason="needs systemd"),
]


class Machine(Container):
    """A container with the host's systemd and the service."""

    def __init__(self, folder):
        root, units = folder / "root", folder / "units"
        root.mkdir()
        units.mkdir()
        (units / "namehop.service").write_text((ROOT / "packaging/namehop.service").read_text().replace("@PREFIX@", PREFIX))
        for target in TARGETS:
            for unit in Path(f"/usr/lib/systemd/system/{target}.target.wants").glob("*"):
                if "journal" not in unit.name and unit.suffix in (".service", ".socket", ".mount", ".automount", ".path", ".timer"):
                    (units / unit.name).unlink(missing_ok=True)
                    (units / unit.name).symlink_to("/dev/null")
        try:
            super().__init__(folder, "systemd", ENTER, root, PROGRAM, units, path=f"{PREFIX}/bin:/usr/sbin:/usr/bin")
        except (AssertionError, OSError) as error:
            pytest.skip(str(error))

    def write(self, path, content):
        file = Path(f"/proc/{self.first}/root") / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def routes(self):
        return self.run("namehop", "route", "list").stdout

    def wait_for_restart(self, before):
        """Waits until a new process of the service is ready."""
        wait_until(lambda: self.property("MainPID") not in ("0", before) and self.property("ActiveState") == "active", 20, "started again")


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.end()


def test_the_service_starts_is_ready_restarts_and_stops(machine):
    machine.run("systemctl", "start", "namehop")
    # A started service is ready, so the test does not wait.
    assert "Version" in machine.run("namehop", "status").stdout
    first = machine.property("MainPID")
    process = Path(f"/proc/{machine.first}/root/proc/{first}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    assert status["Uid"].split()[0] != "0" and status["Seccomp"] == "2"
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    limit = next(line.split() for line in (process / "limits").read_text().splitlines() if line.startswith("Max open files"))
    assert limit[3] == limit[4] and int(limit[3]) > 1024, limit

    machine.run("namehop", "route", "add", "/kept", "udp4://127.0.0.1:7009")
    machine.run("kill", "-9", first)
    machine.wait_for_restart(first)
    assert "/kept" in machine.routes()
    # These signals end the router cleanly. systemd did not send them, so it restarts the service.
    for signal in ("HUP", "TERM"):
        before = machine.property("MainPID")
        machine.run("kill", f"-{signal}", before)
        machine.wait_for_restart(before)
        assert "/kept" in machine.routes()
    assert machine.property("NRestarts") == "3"

    machine.run("systemctl", "stop", "namehop")
    assert (machine.property("Result"), machine.property("ExecMainStatus")) == ("success", "0")
    time.sleep(3)
    assert machine.property("ActiveState") == "inactive", "stopped is stopped"
    assert machine.run("ls", "/run/nfd", check=False).returncode != 0
    assert machine.run("stat", "-c", "%a %n", "/var/lib/namehop/state.json").stdout == "600 /var/lib/namehop/state.json\n"


def test_the_service_with_what_ports_need(machine):
    machine.write("/etc/systemd/system/namehop.service.d/ports.conf", (ROOT / "packaging/namehop-ports.conf").read_text())
    command = f"{PREFIX}/bin/namehop run --config /etc/namehop/namehop.toml"
    machine.write("/etc/systemd/system/namehop.service.d/override.conf", f"[Service]\nExecStart=\nExecStart={command}\n")
    machine.write("/etc/namehop/namehop.toml", '[ports]\ninterfaces = ["eth1"]\n[forwarding]\nsmall_buffers = 8192\nlarge_buffers = 2048\n')
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "namehop")
    machine.run("namehop", "face", "create", "ether://[02:00:00:00:00:77]", "--local", "dev://eth1", "--persistency", "permanent")
    machine.run("namehop", "face", "create", "memif:///run/nfd/link.sock?id=0")
    assert machine.run("stat", "-c", "%A", "/run/nfd/link.sock").stdout.startswith("srwxrwxrwx")
    before = machine.property("MainPID")
    machine.run("kill", "-9", before)
    machine.wait_for_restart(before)
    wait_until(lambda: "dev://eth1" in machine.run("namehop", "face", "list").stdout, what="the face is back")


def test_the_service_loads_strategies(machine, tmp_path):
    machine.write("/root/hedge.o", compile_strategy(tmp_path, SDK / "examples/hedge.c", "hedge").read_bytes())
    machine.run("systemctl", "start", "namehop")
    machine.run("namehop", "strategy", "load", "/root/hedge.o", "--token", "/var/lib/namehop/state.json.api-token")
    machine.run("namehop", "strategy", "set", "/example", "hedge")
    machine.run("systemctl", "restart", "namehop")
    assert "strategy/hedge/v=1" in machine.run("namehop", "strategy", "list").stdout
    assert "interpreted" not in machine.journal(), "native code, under MemoryDenyWriteExecute=yes"


def test_a_service_that_cannot_start_says_so(machine):
    machine.write("/etc/namehop.toml", "nonsense = 1\n")
    command = f"{PREFIX}/bin/namehop run --config /etc/namehop.toml"
    machine.write("/etc/systemd/system/namehop.service.d/override.conf", f"[Service]\nExecStart=\nExecStart={command}\n")
    machine.run("systemctl", "daemon-reload")
    assert machine.run("systemctl", "start", "namehop", check=False).returncode != 0
    assert "/etc/namehop.toml:1:1" in machine.journal()
    # The service starts as soon as the file is correct.
    machine.write("/etc/namehop.toml", "")
    wait_until(lambda: machine.property("ActiveState") == "active", 20, "it tried again")
