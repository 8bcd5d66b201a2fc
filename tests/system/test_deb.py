"""The Debian package ($NAMEHOP_DEB) in a clean Debian with a systemd of its own: installed, started, upgraded, removed, purged.

The clean Debian is made once, by debootstrap, with what the package depends on and nothing else; it is kept beside the package, and
each run changes a layer above it only.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from container import Container

PACKAGE = os.environ.get("NAMEHOP_DEB")
RELEASE = "bookworm"
# What the container is made of. Arguments: the clean Debian, a folder for the layer above it, the package.
ENTER = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
cp "$3" root/namehop.deb
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
    pytest.mark.skipif(not PACKAGE, reason="make deb-test names the package in NAMEHOP_DEB"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a container needs root"),
]


def clean_debian():
    """A folder with Debian, and what the package says that it needs."""
    depends = subprocess.run(["dpkg-deb", "-f", PACKAGE, "Depends"], capture_output=True, text=True, check=True).stdout.strip()
    root = Path(PACKAGE).parents[1] / f"deb-root-{hashlib.sha256(depends.encode()).hexdigest()[:12]}"
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
    """A running container."""

    def __init__(self, folder):
        layer = folder / "layer"
        layer.mkdir()
        super().__init__(folder, "deb", ENTER, clean_debian(), layer, PACKAGE)

    def has(self, path):
        return self.run("test", "-e", path, check=False).returncode == 0


@pytest.fixture
def debian(tmp_path):
    debian = Debian(tmp_path)
    yield debian
    debian.end()


def test_the_package_is_installed_upgraded_removed_and_purged(debian):
    files = debian.says("find", "/etc", "/var/lib", "/usr", "-xdev", "-not", "-path", "/var/lib/dpkg/*", "-not", "-path", "/var/lib/systemd/*")
    debian.run("dpkg", "-i", "/root/namehop.deb")
    assert debian.says("systemctl", "is-enabled", "namehop") == "enabled"
    assert debian.says("systemctl", "is-active", "namehop") == "active", debian.journal()
    assert "Version" in debian.run("namehop", "status").stdout
    debian.run("namehop", "route", "add", "/kept", "udp4://127.0.0.1:7009")
    assert debian.says("namehop", "setup", "--json")
    for path in ("/usr/share/bash-completion/completions/namehop", "/etc/namehop/namehop.toml"):
        assert debian.has(path), path
    # A small Debian may be told to leave manual pages out; the package has them all the same.
    assert "/usr/share/man/man1/namehop.1.gz" in debian.run("dpkg", "-L", "namehop").stdout.splitlines()

    # Settings of the operator stay, and the service runs on with its state.
    debian.run("sh", "-c", "echo '# mine' >> /etc/namehop/namehop.toml")
    first = debian.property("MainPID")
    debian.run("dpkg", "-i", "/root/namehop.deb")
    assert debian.property("MainPID") not in ("0", first)
    assert "/kept" in debian.run("namehop", "route", "list").stdout
    assert "# mine" in debian.run("cat", "/etc/namehop/namehop.toml").stdout

    debian.run("dpkg", "-r", "namehop")
    assert not debian.has("/usr/bin/namehop") and debian.has("/etc/namehop/namehop.toml") and debian.has("/var/lib/namehop")
    assert debian.says("systemctl", "is-active", "namehop") == "inactive"

    debian.run("dpkg", "-P", "namehop")
    after = debian.says("find", "/etc", "/var/lib", "/usr", "-xdev", "-not", "-path", "/var/lib/dpkg/*", "-not", "-path", "/var/lib/systemd/*")
    left = set(after.splitlines()) - set(files.splitlines())
    # systemd keeps the folder for state of dynamic users.
    assert left <= {"/var/lib/private"}, left
