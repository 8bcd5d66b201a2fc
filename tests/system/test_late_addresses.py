"""A router whose addresses, multicast interface or socket file are missing or disappear: it starts, waits and recovers."""

import os
import socket
import subprocess
import sys

import pytest
from conftest import PROGRAM, wait_until
from packets import interest
from port_links import Link, ip, needs_root

LATE = {"udp4": "192.0.2.1", "udp6": "2001:db8::1"}


@pytest.fixture
def link():
    with Link(f"sl{os.getpid()}") as link:
        yield link


def add(link, end, address):
    options = ["/64", "nodad"] if ":" in address else ["/24"]
    ip("-n", link.namespaces[end], "address", "add", address + options[0], "dev", link.devices[end], *options[1:])


def connects(link, address, port):
    script = f"import socket; socket.create_connection(('{address}', {port}), timeout=1)"
    return subprocess.run([*link.inside(0), sys.executable, "-c", script], capture_output=True).returncode == 0


@needs_root
@pytest.mark.parametrize("of_metrics", LATE)
def test_listeners_wait_for_their_addresses(make_router, link, of_metrics):
    router = make_router(start=False)
    bracketed = {scheme: f"[{address}]" if ":" in address else address for scheme, address in LATE.items()}
    hosts = bracketed.values()
    for section, port in (("udp", router.udp), ("tcp", router.tcp), ("websocket", router.ws)):
        listen = ", ".join(f'"{host}:{port}"' for host in hosts)
        router.extra += f"[faces.{section}]\nlisten = [{listen}]\n"
    router.extra += f'[metrics]\nlisten = "{bracketed[of_metrics]}:{router.metrics}"\n'
    router.prefix = link.inside(1)
    router.start()
    assert router.log.read_text().count("no network interface has this address yet") == 7
    for scheme, address in LATE.items():
        add(link, 1, address)
        add(link, 0, address + "9")
        for port in (router.tcp, router.ws):
            wait_until(lambda: connects(link, address, port), what=f"{address} {port} answers")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        packet = interest("/nothing").hex()
        script = f"import socket; socket.socket({int(family)}, socket.SOCK_DGRAM).sendto(bytes.fromhex('{packet}'), ('{address}', {router.udp}))"
        subprocess.run([*link.inside(0), sys.executable, "-c", script], check=True)
        faces = lambda: [face["local_uri"] for face in router.json("face", "list") if face["local_uri"].startswith(f"{scheme}://")]
        wait_until(faces, what="a face of the peer")
        assert address in faces()[0]
    wait_until(lambda: router.log.read_text().count("has this address now: listening on it") == 6, what="the log says so")
    assert connects(link, LATE[of_metrics], router.metrics)


@needs_root
def test_a_multicast_interface_is_waited_for(make_router, link):
    router = make_router(start=False)
    router.extra = '[faces.multicast]\ninterfaces = ["late0"]\n'
    router.prefix = link.inside(1)
    router.start()
    assert "no such network interface yet" in router.log.read_text()
    groups = lambda: [(face["local_uri"], face["is_up"]) for face in router.json("face", "list") if "late0" in face["local_uri"]]
    assert groups() == []
    ip("-n", link.namespaces[1], "link", "add", "late0", "type", "veth", "peer", "name", "late1")
    for device in ("late0", "late1"):
        ip("-n", link.namespaces[1], "link", "set", device, "up")
    ip("-n", link.namespaces[1], "address", "add", "198.51.100.1/24", "dev", "late0")
    expected = {("udp4+dev://late0:56363", True), ("udp6+dev://late0:56363", True)}
    wait_until(lambda: set(groups()) == expected, what="both groups are joined")
    assert router.log.read_text().count("joining the multicast group interface=") == 2


@needs_root
def test_a_port_that_is_taken_is_an_error_at_a_late_address_too(make_router, link):
    router = make_router(start=False)
    router.extra = f'[faces.tcp]\nlisten = ["192.0.2.1:{router.tcp}", "192.0.2.1:{router.tcp}"]\n'
    router.write_config()
    ended = subprocess.run([*link.inside(1), PROGRAM, "run", "--config", router.config], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert f"port {router.tcp} on 192.0.2.1 is in use" in ended.stderr + ended.stdout


@pytest.mark.parametrize("how", ["file", "folder", "replaced"])
def test_a_socket_file_that_is_removed_comes_back(make_router, how, tmp_path):
    folder = tmp_path / "run"
    router = make_router(start=False)
    router.socket = folder / "nfd.sock"
    router.start()
    mode = router.socket.stat().st_mode
    with router.connect() as before:
        router.socket.unlink()
        if how == "folder":
            folder.rmdir()
        elif how == "replaced":
            # A socket without a listening process.
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(str(router.socket))
        wait_until(router._answers, what="applications can connect again")
        assert router.socket.stat().st_mode == mode
        # Existing connections still work.
        before.sendall(interest("/localhost/nfd/status/general", can_be_prefix=True, must_be_fresh=True, lifetime=4000))
        assert before.recv(1)
    router.stop()
    assert not router.socket.exists()
