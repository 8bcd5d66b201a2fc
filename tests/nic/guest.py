"""A virtual machine with real drivers for emulated network cards: Debian's kernel, an IOMMU, and a RAM disk with busybox and the program
under test.

QEMU interprets the instructions of the guest, so it runs on every host, but too slowly for measurements of time.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (ROOT / os.environ.get("NAMEHOP", "target/debug/namehop")).resolve()
# Made by `make ports` beside the programs.
SHIM = PROGRAM.with_name("libnamehop_dpdk.so")
# Tests rules for receive queues; see tests/nic/test_steering.py.
STEERING = ROOT / "target/debug/examples/steering"
# The unpacked package of Debian's kernel, installed by scripts/setup.sh nic.
KERNEL = ROOT / "target/nic/kernel"
# Kernel modules of the guest. Their dependencies are added.
MODULES = (
    "vfio-pci", "vfio_iommu_type1", "tun", "e1000e", "vmxnet3", "virtio_pci", "virtio_net", "8021q",
    # Traffic control modules, with which DPDK's TAP driver steers frames.
    "sch_multiq", "sch_ingress", "cls_flower", "act_skbedit", "act_gact",
)  # fmt: skip
# DPDK plug-ins, loaded if present.
PLUGINS = ("bus_pci", "bus_vdev", "net_e1000", "net_vmxnet3", "net_virtio", "net_tap", "mempool_ring")
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /run /tmp /etc /var/lib
mount -t tmpfs run /run
ln -sf /run /var/run
ip link set lo up
# Where udev runs, the kernel has the part of vfio that knows the IOMMU loaded by itself.
modprobe -a tun vfio_iommu_type1 e1000e vmxnet3 virtio_pci virtio_net
# Modules are loaded, interfaces are named: hand the second serial line to the test. It is kept open, so that it stays as set.
exec 3<> /dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo @ready@ >&3
# What it prints goes through a pipe, so that the shell takes nobody for a person: no prompts.
sh <&3 2> /dev/null | cat >&3
"""


def libraries(files):
    """Returns the shared libraries that these files need."""
    found = set()
    for file in files:
        listed = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        found.update(Path(path) for path in re.findall(r"(/\S+) \(0x", listed))
    return found


def module_files(release):
    """Returns the files of MODULES and of their dependencies."""
    index = {}
    for line in (KERNEL / "lib/modules" / release / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        index[Path(file).name.split(".")[0].replace("-", "_")] = [file, *needs.split()]
    files = set()
    for module in MODULES:
        # A module that is not in the index is built into the kernel.
        files.update(index.get(module.replace("-", "_"), []))
    return files


def make_disk(folder, programs, files):
    """Makes the RAM disk, a cpio archive with the shim of DPDK, these programs in /usr/bin and these files in /usr/share. Returns its path."""
    root = folder / "root"
    for name in ("bin", "sbin", "proc", "sys", "dev", "usr/bin", "usr/share", "lib/modules", "var"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for applet in subprocess.run([root / "bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split():
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")
    for program in programs:
        place = root / "usr/bin" / ("namehop" if program == PROGRAM else program.name)
        shutil.copy(program, place)
        subprocess.run(["strip", place], check=True)
    for file in files:
        shutil.copy(file, root / "usr/share")
    (root / "usr/lib/namehop").mkdir(parents=True)
    shutil.copy(SHIM, root / "usr/lib/namehop")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)

    release = next((KERNEL / "lib/modules").iterdir()).name
    if not (KERNEL / "lib/modules" / release / "modules.dep").exists():
        subprocess.run(["depmod", "-b", KERNEL, release], check=True)
    modules = Path("lib/modules") / release
    for file in module_files(release):
        (root / modules / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KERNEL / modules / file, root / modules / file)
    subprocess.run(["depmod", "-b", root, release], check=True, stderr=subprocess.DEVNULL)

    plugins = []
    for folder_of_plugins in Path("/usr/lib").glob("*-linux-gnu/dpdk/pmds-*"):
        for name in PLUGINS:
            plugins += [file for file in folder_of_plugins.glob(f"librte_{name}.so.*") if not file.is_symlink()]
    for file in [*plugins, *libraries([*programs, SHIM, *plugins])]:
        # Two names of a library must lead to one file, or the library would be loaded twice.
        real, target = (root / str(path).lstrip("/") for path in (file.resolve(), file))
        for path in (real, target):
            path.parent.mkdir(parents=True, exist_ok=True)
        if not real.exists():
            shutil.copy(file.resolve(), real)
        if not target.exists():
            target.symlink_to(Path("/") / real.relative_to(root))
    for file in plugins:
        # Link the short name, which the plug-in loader follows.
        link = (root / str(file).lstrip("/")).with_name(re.sub(r"\.so\..*", ".so", file.name))
        if not link.exists():
            link.symlink_to(file.name)
    disk = folder / "disk.cpio"
    names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
    with open(disk, "wb") as out:
        subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root, input=names, stdout=out, check=True)
    shutil.rmtree(root)
    return disk


# Multi-queue cards need a multi-queue network backend, which TAP interfaces are. They are made in a separate network namespace of QEMU, so
# no privileges are needed. A bridge joins the interfaces of each network. It does not learn addresses and floods every frame to all cards,
# because an address may move to another card between tests.
BRIDGED = """
while [ "$1" != -- ]; do
    if ! ip link show "$3" >/dev/null 2>&1; then
        ip link add "$3" type bridge mcast_snooping 0 ageing_time 0 && ip link set "$3" up || exit 1
    fi
    ip tuntap add dev "$1" mode tap $2 && ip link set "$1" master "$3" mtu 9000 up || exit 1
    shift 3
done
shift
exec "$@"
"""


class Guest:
    """A running virtual machine. `cards` are QEMU models, optionally with `,queues=N` for several queues and `,network=N` for a network
    other than 0.
    """

    def __init__(self, folder, cards, programs=(), files=(), memory_mib=1024):
        self.folder = folder
        self.console = folder / "console.txt"
        line, monitor = folder / "line", folder / "monitor"
        disk = make_disk(folder, [PROGRAM, STEERING, *programs], files)
        release = next((KERNEL / "lib/modules").iterdir()).name
        command = [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(memory_mib),
            "-machine", "q35,kernel-irqchip=split", "-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48",
            "-kernel", KERNEL / f"boot/vmlinuz-{release}", "-initrd", disk,
            # Without `no_timer_check` the kernel stops booting if the host is too slow for its timer test.
            "-append", "no_timer_check console=ttyS0 intel_iommu=on iommu=pt panic=-1 quiet loglevel=4",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", f"file:{self.console}",
            "-serial", f"unix:{line},server=on,wait=on", "-qmp", f"unix:{monitor},server=on,wait=off",
        ]  # fmt: skip
        taps = []
        for number, card in enumerate(cards):
            model, *options = card.split(",")
            options = dict(option.split("=") for option in options)
            queues, network = options.get("queues", ""), options.get("network", "0")
            # A root port for each card, so that each has its own IOMMU group and can be unplugged.
            command += ["-device", f"pcie-root-port,id=port{number},chassis={number + 1},slot={number + 1}"]
            if any("queues=" in card for card in cards):
                several = [f"queues={queues}"] if queues else []
                command += ["-netdev", ",".join([f"tap,id=net{number},ifname=tap{number},script=no,downscript=no", *several])]
                taps += [f"tap{number}", "multi_queue" if queues else "", f"bridge{network}"]
            else:
                command += ["-netdev", f"hubport,id=net{number},hubid={network}"]
            # Behind the IOMMU, like a real card.
            if model == "virtio-net":
                model = f"{model}-pci,disable-legacy=on,iommu_platform=on"
                model += f",mq=on,rss=on,vectors={2 * int(queues) + 2}" if queues else ""
            command += ["-device", f"{model},id=card{number},netdev=net{number},bus=port{number},mac=02:00:00:00:00:0{number}"]
        if taps:
            command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", BRIDGED, "sh", *taps, "--", *command]
        with open(folder / "qemu.txt", "wb") as log:
            self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.line = self._connect(line)
            self.buffer = b""
            self._read_until(rb"@ready@\s", 600)
            self.monitor = self._connect(monitor).makefile("rw")
            self.monitor.readline()
            self.qmp("qmp_capabilities")
        except BaseException:
            self.end()
            raise

    def _connect(self, path):
        end = time.monotonic() + 30
        while True:
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(path))
                return connection
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, (self.folder / "qemu.txt").read_text()
                time.sleep(0.05)

    def _read_until(self, pattern, seconds):
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.buffer)):
            left = end - time.monotonic()
            console = self.console.read_text(errors="replace")[-4000:] if self.console.exists() else ""
            assert left > 0 and self.process.poll() is None, f"the guest says nothing more: {self.buffer[-4000:]!r}\n{console}"
            self.line.settimeout(left)
            try:
                received = self.line.recv(65536)
            except TimeoutError:
                continue
            self.buffer += received
        text, self.buffer = self.buffer[: match.start()], self.buffer[match.end() :]
        return text.decode(errors="replace").replace("\r", ""), match

    def run(self, command, check=True, seconds=400):
        """Runs a shell command in the guest and returns its output. With check=False, returns the exit code and the output."""
        self.line.sendall(f"{{ {command}\n}} 2>&1; echo \"@code $?@\"\n".encode())
        text, match = self._read_until(rb"@code (\d+)@\s", seconds)
        code = int(match[1])
        assert not check or code == 0, f"{command}: {code}\n{text}"
        return text if check else (code, text)

    def write(self, path, text):
        self.run(f"cat > {path} <<'@end@'\n{text}\n@end@")

    def wait(self, command, seconds=120):
        """Waits until the command succeeds, and returns its output."""
        end = time.monotonic() + seconds
        while True:
            code, text = self.run(command, check=False)
            if code == 0:
                return text
            assert time.monotonic() < end, f"{command}: not within {seconds} s: {text}"
            time.sleep(0.2)

    def qmp(self, command, **arguments):
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.monitor.flush()
        while True:
            answer = json.loads(self.monitor.readline())
            if "return" in answer or "error" in answer:
                assert "return" in answer, answer
                return answer["return"]

    def end(self):
        self.process.kill()
        self.process.wait()
