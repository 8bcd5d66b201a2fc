"""The systemd service: its exposure level, and that it allows all system calls of the router."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE, ROOT

SERVICE = ROOT / "packaging/namehop.service"
PORTS = ROOT / "packaging/namehop-ports.conf"
MOST_EXPOSED = 3.0
# DPDK tries this call on x86 and needs it for none of our ports. It requires CAP_SYS_RAWIO, which the service does not have.
REFUSED_TO_ALL = {"iopl"}

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def exposure(file):
    found = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", str(file)], capture_output=True, text=True, timeout=60)
    level = re.search(r"exposure level for \S+ ([0-9.]+)", found.stdout)
    if level is None:
        pytest.skip(f"this systemd-analyze rates no files: {found.stderr}")
    assert "Unknown" not in found.stderr and "Failed" not in found.stderr, found.stderr
    return float(level[1])


def test_the_service_is_hardly_exposed(tmp_path):
    file = tmp_path / "namehop.service"
    text = SERVICE.read_text().replace("@PREFIX@", "/usr")
    file.write_text(text)
    assert exposure(file) < MOST_EXPOSED
    # The drop-in file for ports adds little exposure.
    with_ports = PORTS.read_text().split("[Service]")[1]
    file.write_text(text.replace("[Install]", with_ports + "\n[Install]"))
    assert exposure(file) < MOST_EXPOSED


def allowed_calls():
    """Returns the system calls that the service may make."""

    def expand(word):
        if not word.startswith("@"):
            return {word}
        listed = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True).stdout
        members = [line.strip() for line in listed.splitlines()[1:]]
        return set().union(*(expand(member) for member in members if member and not member.startswith("#")))

    allowed = expand("@default")
    for line in SERVICE.read_text().splitlines():
        if line.startswith("SystemCallFilter="):
            words = line.partition("=")[2]
            change = set().union(*(expand(word) for word in words.lstrip("~").split()))
            allowed = allowed - change if words.startswith("~") else allowed | change
    return allowed


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_router_makes_no_call_that_the_service_forbids(make_router, tmp_path):
    calls = tmp_path / "calls"
    router = make_router(f'[ports]\nmemif_folders = ["{tmp_path}"]\n', start=False)
    router.prefix = ["strace", "-f", "-qq", "-o", str(calls)]
    router.start()
    face = router.json("face", "create", "udp4://127.0.0.1:7009", "--persistency", "permanent")["face_id"]
    router.namehop("route", "add", "/a", face)
    router.namehop("face", "create", "tcp4://127.0.0.1:9", "--persistency", "permanent")
    router.namehop("face", "create", f"memif://{tmp_path}/m.sock?id=0")
    router.namehop("status")
    # strace does not forward signals, so signal the router itself.
    program = Path(f"/proc/{router.process.pid}/task/{router.process.pid}/children").read_text().split()[0]
    os.kill(int(program), signal.SIGTERM)
    assert router.process.wait(PATIENCE) == 0
    made = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", calls.read_text(), re.MULTILINE))
    assert {"epoll_wait", "rename", "socket"} <= made
    assert made - allowed_calls() - REFUSED_TO_ALL == set()
