"""Ports on network cards without the kernel (pci://): a router with such a card and one with a card of the kernel, on one network."""

import json

import pytest

CONFIG = """[log]
level = "info"
[forwarding]
small_buffers = 2048
large_buffers = 64
pit_capacity = 1024
[content_store]
capacity_packets = 16
capacity_bytes = "1 MiB"
[memory]
huge_pages = "off"
[faces.unix]
path = "/run/{name}.sock"
[faces.tcp]
listen = []
[faces.udp]
listen = []
[faces.websocket]
listen = []
[metrics]
enabled = false
[state]
enabled = false
[[port]]
uri = "{port}"
[[face]]
uri = "ether://[{peer}]"
local = "{port}"
"""


class Router:
    def __init__(self, guest, name, port, peer):
        self.guest, self.name = guest, name
        guest.write(f"/tmp/{name}.toml", CONFIG.format(name=name, port=port, peer=peer))
        guest.run(f"namehop run --config /tmp/{name}.toml > /tmp/{name}.log 2>&1 & echo $! > /tmp/{name}.pid")
        guest.wait(f"namehop --transport unix:///run/{name}.sock status || {{ cat /tmp/{name}.log; false; }}", 60)

    def command(self, text, check=True, seconds=60):
        return self.guest.run(f"namehop --transport unix:///run/{self.name}.sock {text}", check=check, seconds=seconds)

    def face(self):
        """The face on the port."""
        faces = json.loads(self.command("face list --json"))
        faces = faces["faces"] if isinstance(faces, dict) else faces
        return next(face for face in faces if face["remote_uri"].startswith("ether://"))

    def log(self):
        return self.guest.run(f"cat /tmp/{self.name}.log")

    def stop(self):
        self.guest.run(f"kill $(cat /tmp/{self.name}.pid); while kill -0 $(cat /tmp/{self.name}.pid) 2>/dev/null; do sleep 0.1; done")


@pytest.fixture(scope="module", params=["e1000e", "vmxnet3"])
def network(guest, request):
    """The number of the card that is taken, its address, and its router; and a router on a card of the kernel."""
    number = {"e1000e": 0, "vmxnet3": 2}[request.param]
    card = guest.run(f"basename $(readlink -f /sys/class/net/eth{number}/device)").strip()
    guest.run("ip link set eth1 up")
    guest.run(f"namehop setup --huge-pages 160MiB --nic {card} --apply --yes")
    kernel = Router(guest, "kernel", "dev://eth1", f"02:00:00:00:00:0{number}")
    taken = Router(guest, "taken", f"pci://{card}", "02:00:00:00:00:01")
    kernel.command("route add /far 'ether://[02:00:00:00:00:0%d]'" % number)
    guest.run("namehop --transport unix:///run/taken.sock serve /far > /tmp/serve.log 2>&1 & echo $! > /tmp/serve.pid")
    guest.wait("namehop --transport unix:///run/taken.sock route list | grep /far")
    yield number, card, taken, kernel
    guest.run("kill $(cat /tmp/serve.pid)")
    taken.stop()
    kernel.stop()
    guest.run("namehop setup --undo --yes")


def ping(kernel, count=5):
    code, text = kernel.command(f"ping /far --count {count} --interval 100ms --timeout 2s", check=False)
    return code, text


def test_packets_go_both_ways(guest, network):
    number, card, taken, kernel = network
    guest.wait(f"namehop --transport unix:///run/taken.sock face list | grep pci://{card}")
    code, text = ping(kernel, 20)
    assert code == 0, text + taken.log()
    face = taken.face()
    assert face["local_uri"] == f"pci://{card}"


def test_the_link_goes_down_and_comes_back(guest, network):
    number, card, taken, kernel = network
    guest.qmp("set_link", name=f"card{number}", up=False)
    guest.wait("grep -q 'link state.*is_up=false' /tmp/taken.log", 30)
    assert ping(kernel, 1)[0] != 0
    guest.qmp("set_link", name=f"card{number}", up=True)
    guest.wait("tail -n 1 /tmp/taken.log | grep -q 'is_up=true' || { tail -n 3 /tmp/taken.log; false; }", 30)
    assert ping(kernel)[0] == 0


def test_a_router_that_has_a_card_keeps_setup_from_taking_it_back(guest, network):
    number, card, taken, kernel = network
    code, text = guest.run("namehop setup --undo --yes", check=False)
    assert code == 1 and "namehop (process" in text, text
    assert ping(kernel)[0] == 0
    guest.run(f"namehop setup --huge-pages 160MiB --nic {card} --apply --yes")


def test_a_card_that_is_pulled_out_is_given_up_and_used_again_when_it_is_back(guest, network):
    number, card, taken, kernel = network
    if number == 2:
        pytest.skip("one kind of card is enough")
    guest.run(f"echo 1 > /sys/bus/pci/devices/{card}/remove", seconds=30)
    assert "taken away" in taken.log()
    guest.run(f"test ! -e /sys/bus/pci/devices/{card}")
    assert taken.command("status", check=False)[0] == 0, "the router goes on"
    guest.run("echo 1 > /sys/bus/pci/rescan")
    guest.run(f"echo vfio-pci > /sys/bus/pci/devices/{card}/driver_override")
    guest.run(f"[ ! -e /sys/bus/pci/devices/{card}/driver ] || echo {card} > /sys/bus/pci/devices/{card}/driver/unbind")
    guest.run(f"echo {card} > /sys/bus/pci/drivers_probe")
    guest.wait("tail -n 3 /tmp/taken.log | grep -q 'is_up=true' || { tail -n 3 /tmp/taken.log; false; }", 60)
    assert ping(kernel)[0] == 0
