"""The Debian packages (in $NAMEHOP_DEBS) in a minimal Debian container with its own systemd: installed, started, upgraded, removed, purged.

The first run makes a minimal Debian for each set of packages, with debootstrap and only the dependencies of these packages. It is stored
beside the packages; each run changes only an overlay above it. Without the package namehop-ports there is no DPDK.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import wait_until
from container import Container

FOLDER = os.environ.get("NAMEHOP_DEBS")
ROUTER, PORTS = "namehop", "namehop-ports"
RELEASE = "bookworm"
# The container's set-up script. Arguments: the minimal Debian, a folder for the overlay, the packages.
ENTER = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
shift 2
cp "$@" root
: > etc/machine-id
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts .old
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs run run -o mode=755
mount -t tmpfs tmp tmp
ip link set lo up
pivot_root . .old
umount -l /.old
exec env -i container=test PATH=/usr/sbin:/usr/bin /usr/lib/systemd/systemd --log-target=journal
"""

pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="make deb-test names the folder of the packages in NAMEHOP_DEBS"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a container needs root"),
]


def file_of(package):
    """Returns the file of a package."""
    (file,) = Path(FOLDER).glob(f"{package}_*.deb")
    return file


def clean_debian(packages):
    """Returns a folder with a minimal Debian and the dependencies of the packages on other packages."""
    fields = [subprocess.run(["dpkg-deb", "-f", file_of(package), "Depends"], capture_output=True, text=True, check=True) for package in packages]
    depends = ", ".join(re.sub(rf"\b{ROUTER} \([^)]*\), ", "", field.stdout.strip()) for field in fields)
    root = Path(FOLDER).parent / f"deb-root-{hashlib.sha256(depends.encode()).hexdigest()[:12]}"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=root.parent) as folder:
            made = Path(folder) / "root"
            subprocess.run(["debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus", RELEASE, made], check=True)
            satisfy = ["apt-get", "satisfy", "-y", "--no-install-recommends", depends]
            subprocess.run(["chroot", made, "apt-get", "update"], check=True)
            subprocess.run(["chroot", made, *satisfy], check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
            shutil.rmtree(made / "var/cache/apt")
            made.rename(root)
    return root


class Debian(Container):
    """A running container, in which the packages can be installed."""

    def __init__(self, folder, packages):
        layer = folder / "layer"
        layer.mkdir()
        super().__init__(folder, "deb", ENTER, clean_debian(packages), layer, *map(file_of, packages))

    def install(self, package):
        self.run("dpkg", "-i", f"/root/{file_of(package).name}")

    def has(self, path):
        return self.run("test", "-e", path, check=False).returncode == 0

    def write(self, path, text):
        self.run("sh", "-c", f"cat > {path} <<'END'\n{text}\nEND")

    def link(self, *arguments):
        """Calls `ip link` of the host in the container's network namespace, because the container has no such command."""
        subprocess.run(["nsenter", "-t", self.first, "-n", "ip", "link", *arguments], check=True, capture_output=True)

    def make_device(self, path, major, minor):
        self.run("sh", "-c", f"mkdir -p $(dirname /dev/{path}) && mknod -m 666 /dev/{path} c {major} {minor}")


@pytest.fixture
def debian(tmp_path, request):
    debian = Debian(tmp_path, request.param)
    yield debian
    debian.end()


@pytest.mark.parametrize("debian", [[ROUTER]], indirect=True)
def test_the_package_is_installed_upgraded_removed_and_purged(debian):
    assert not debian.says("find", "/usr", "-name", "librte*"), "a router with sockets needs no DPDK"
    files = debian.says("find", "/etc", "/var/lib", "/usr", "-xdev", "-not", "-path", "/var/lib/dpkg/*", "-not", "-path", "/var/lib/systemd/*")
    debian.install(ROUTER)
    assert debian.says("systemctl", "is-enabled", "namehop") == "enabled"
    assert debian.says("systemctl", "is-active", "namehop") == "active", debian.journal()
    assert "Version" in debian.run("namehop", "status").stdout
    debian.run("namehop", "route", "add", "/kept", "udp4://127.0.0.1:7009")
    assert debian.says("namehop", "setup", "--json")
    debian.run("systemd-run", "--unit=serve", "namehop", "serve", "/served")
    wait_until(lambda: debian.run("namehop", "ping", "/served", "-c", "1", check=False).returncode == 0, what="answers over sockets")
    debian.run("systemctl", "stop", "serve")
    refused = debian.run("namehop", "face", "create", "memif:///run/nfd/link.sock?id=0&role=server", check=False)
    assert refused.returncode != 0 and "install the package namehop-ports" in refused.stderr, refused.stderr
    for path in ("/usr/share/bash-completion/completions/namehop", "/etc/namehop/namehop.toml"):
        assert debian.has(path), path
    # A minimal Debian may skip the installation of manual pages, so check the package's list of files.
    assert "/usr/share/man/man1/namehop.1.gz" in debian.run("dpkg", "-L", "namehop").stdout.splitlines()

    # The operator's settings stay, and the service restarts with its state.
    debian.run("sh", "-c", "echo '# mine' >> /etc/namehop/namehop.toml")
    first = debian.property("MainPID")
    debian.install(ROUTER)
    assert debian.property("MainPID") not in ("0", first)
    assert "/kept" in debian.run("namehop", "route", "list").stdout
    assert "# mine" in debian.run("cat", "/etc/namehop/namehop.toml").stdout

    debian.run("dpkg", "-r", "namehop")
    assert not debian.has("/usr/bin/namehop") and debian.has("/etc/namehop/namehop.toml") and debian.has("/var/lib/namehop")
    assert debian.says("systemctl", "is-active", "namehop") == "inactive"

    debian.run("dpkg", "-P", "namehop")
    after = debian.says("find", "/etc", "/var/lib", "/usr", "-xdev", "-not", "-path", "/var/lib/dpkg/*", "-not", "-path", "/var/lib/systemd/*")
    left = set(after.splitlines()) - set(files.splitlines())
    # systemd keeps the state folder of dynamic users.
    assert left <= {"/var/lib/private"}, left


PEER = """
[forwarding]
small_buffers = 8192
large_buffers = 2048
[faces.unix]
path = "/root/peer.sock"
[faces.udp]
listen = []
[faces.tcp]
listen = []
[faces.websocket]
listen = []
[metrics]
enabled = false
[state]
enabled = false
[ports]
interfaces = ["all"]
memif_folders = ["/run/nfd"]
"""
SERVICE = """
[forwarding]
small_buffers = 8192
large_buffers = 2048
[ports]
interfaces = ["all"]
memif_folders = ["/run/nfd"]
[[port]]
uri = "tap://ndn0"
multicast = true
[[port]]
uri = "pcap://?out=/run/nfd/out.pcap"
multicast = true
"""


@pytest.mark.parametrize("debian", [[ROUTER, PORTS]], indirect=True)
def test_the_package_for_ports_opens_every_kind_of_port(debian):
    """The service, with the drop-in file for ports, and a second router as its peer."""
    debian.install(ROUTER)
    first = debian.property("MainPID")
    debian.install(PORTS)
    assert debian.property("MainPID") not in ("0", first), "the service restarts, to open its configured ports"
    for kind in ("dev", "xdp"):
        debian.link("add", f"{kind}0", "type", "veth", "peer", "name", f"{kind}1")
        debian.link("set", f"{kind}0", "up")
        debian.link("set", f"{kind}1", "up")
    debian.make_device("net/tun", 10, 200)
    debian.write("/etc/namehop/namehop.toml", SERVICE)
    # The commented lines of the file are for TAP interfaces and AF_XDP.
    drop_in = "/etc/systemd/system/namehop.service.d/ports.conf"
    debian.run("sh", "-c", f"mkdir -p {drop_in.rsplit('/', 1)[0]}; sed 's/^#\\([A-Z]\\)/\\1/' /usr/share/doc/namehop/namehop-ports.conf > {drop_in}")
    debian.run("systemctl", "daemon-reload")
    debian.run("systemctl", "restart", "namehop")
    debian.write("/root/peer.toml", PEER)
    debian.run("systemd-run", "--unit=peer", "namehop", "run", "--config", "/root/peer.toml")
    peer = ["--transport", "unix:///root/peer.sock"]
    wait_until(lambda: debian.run("namehop", "status", *peer, check=False).returncode == 0, what="the peer runs")
    debian.run("systemd-run", "--unit=serve", "namehop", "serve", "/served", *peer)
    debian.link("set", "ndn0", "up")

    def address(device):
        return debian.says("cat", f"/sys/class/net/{device}/address")

    links = {
        "dev": (f"ether://[{address('dev1')}]", "dev://dev0", f"ether://[{address('dev0')}]", "dev://dev1"),
        "xdp": (f"ether://[{address('xdp1')}]", "xdp://xdp0", f"ether://[{address('xdp0')}]", "dev://xdp1"),
        "memif": ("memif:///run/nfd/link.sock?id=0&role=server", None, "memif:///run/nfd/link.sock?id=0&role=client", None),
    }
    for kind, (remote, local, far_remote, far_local) in links.items():
        debian.run("namehop", "face", "create", remote, *(["--local", local] if local else []))
        debian.run("namehop", "face", "create", far_remote, *(["--local", far_local] if far_local else []), *peer)
        debian.run("namehop", "route", "add", "/served", remote)
        answered = lambda: debian.run("namehop", "ping", "/served", "-c", "3", "-i", "20ms", check=False).returncode == 0
        wait_until(answered, what=f"answers over {kind}")
        debian.run("namehop", "route", "remove", "/served", remote)
    # Multicast frames leave by the TAP interface and go into the capture.
    before = int(debian.says("cat", "/sys/class/net/ndn0/statistics/rx_packets"))
    group = "ether://[01:00:5e:00:17:aa]"
    faces = json.loads(debian.run("namehop", "face", "list", "--json").stdout)
    for face in faces:
        if face["remote_uri"] == group:
            debian.run("namehop", "route", "add", "/nowhere", face["face_id"])
    debian.run("namehop", "strategy", "set", "/nowhere", "multicast")
    debian.run("namehop", "ping", "/nowhere", "-c", "3", "-i", "20ms", check=False)
    wait_until(lambda: int(debian.says("cat", "/sys/class/net/ndn0/statistics/rx_packets")) >= before + 3, what="frames on the TAP interface")
    wait_until(lambda: int(debian.says("stat", "-c", "%s", "/run/nfd/out.pcap")) > 100, what="frames in the capture")
