"""Ports on network cards without the kernel (pci://): routers with such cards, and a router with a kernel card, on one network."""

import json
import os

import pytest

CONFIG = """[log]
level = "{level}"
[forwarding]
small_buffers = 4096
large_buffers = 1024
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
multicast = true
addresses = ["192.0.2.1{number}/24", "2001:db8::1{number}/64"]
{options}
[[face]]
uri = "ether://[02:00:00:00:00:0{peer}]"
local = "{port}"
[[face]]
uri = "ether://[02:00:00:00:00:0{peer}]"
local = "{port}?vlan=7"
[[face]]
uri = "udp4://192.0.2.1{peer}:6363"
local = "{port}"
[[face]]
uri = "udp6://[2001:db8::1{peer}]:6363"
local = "{port}"
"""
# The cards on the network, by number.
CARDS = ["e1000e", "e1000e", "vmxnet3", "virtio-net"]
LEVEL = os.environ.get("NAMEHOP_LOG_LEVEL", "info")
# Numbers of the cards that are tested without the kernel.
TRIED = [int(number) for number in os.environ.get("NAMEHOP_NIC_CARDS", "0,2,3").split(",")]
# Number of the card that the kernel keeps.
KERNEL = 1


class Router:
    """A router on the card with this number, with faces to the card with the number `peer`."""

    def __init__(self, guest, name, number, port, peer, options="", config=CONFIG):
        self.guest, self.name = guest, name
        guest.write(f"/tmp/{name}.toml", config.format(name=name, number=number, port=port, peer=peer, options=options, level=LEVEL))
        guest.run(f"namehop run --config /tmp/{name}.toml > /tmp/{name}.log 2>&1 & echo $! > /tmp/{name}.pid")
        guest.wait(f"namehop --transport unix:///run/{name}.sock status || {{ cat /tmp/{name}.log; false; }}")
        guest.wait(f"grep -q 'is_up=true' /tmp/{name}.log || {{ cat /tmp/{name}.log; false; }}")

    def command(self, text, check=True):
        return self.guest.run(f"namehop --transport unix:///run/{self.name}.sock {text}", check=check)

    def faces(self):
        """Returns the faces on the port, by scheme, or as "vlan" or "group"."""
        faces = json.loads(self.command("face list --json"))
        faces = faces["faces"] if isinstance(faces, dict) else faces
        found = {}
        for face in faces:
            scheme, local = face["remote_uri"].split("://")[0], face["local_uri"]
            if "01:00:5e" in face["remote_uri"]:
                found["group"] = face
            elif local.startswith(("pci://", "dev://")):
                found["vlan" if "vlan=" in local else scheme] = face
        return found

    def route(self):
        """Adds a route to each face, named after the face."""
        lines = "\n".join(f"/far/{name} {face['face_id']}" for name, face in self.faces().items())
        self.guest.write("/tmp/routes", lines)
        self.command("route add --file /tmp/routes")

    def serve(self, prefix="/far", options=""):
        """Answers all Interests below a prefix."""
        socket = f"unix:///run/{self.name}.sock"
        self.guest.run(f"namehop --transport {socket} serve {prefix} {options} > /tmp/serve.log 2>&1 & echo $! >> /tmp/{self.name}.pid")

    def ping(self, prefix, count=5):
        return self.command(f"ping /far/{prefix} --count {count} --interval 50ms --timeout 5s", check=False)

    def log(self):
        return self.guest.run(f"cat /tmp/{self.name}.log")

    def stop(self):
        self.guest.run(f"kill $(cat /tmp/{self.name}.pid); sleep 0.2; while kill -0 $(head -n 1 /tmp/{self.name}.pid) 2>/dev/null; do sleep 0.1; done")


def address_of(guest, number):
    """Returns the PCI address of a card."""
    return guest.run(
        f"for i in /sys/class/net/*; do if grep -q 02:00:00:00:00:0{number} $i/address; then d=$(readlink -f $i/device); "
        "case $d in *virtio*) d=$(dirname $d);; esac; basename $d; fi; done"
    ).strip()


def interface_of(guest, number):
    return guest.run(f"basename $(dirname $(grep -l 02:00:00:00:00:0{number} /sys/class/net/*/address))").strip()


def take_by_vfio(guest, card):
    guest.run(f"echo vfio-pci > /sys/bus/pci/devices/{card}/driver_override")
    guest.run(f"[ ! -e /sys/bus/pci/devices/{card}/driver ] || echo {card} > /sys/bus/pci/devices/{card}/driver/unbind")
    guest.run(f"echo {card} > /sys/bus/pci/drivers_probe")


@pytest.fixture(scope="module", params=TRIED, ids=lambda number: CARDS[number])
def network(guest, request):
    """The number and PCI address of the tested card, its router, and a router on a kernel card."""
    number = request.param
    card = address_of(guest, number)
    interface = interface_of(guest, KERNEL)
    # One card shares its link with the kernel, and one carries jumbo frames.
    options = {0: 'kernel_interface = "shared"', 2: "mtu = 9000"}.get(number, "")
    guest.run(f"ip link set {interface} mtu {9000 if 'mtu' in options else 1500} up")
    guest.run(f"namehop setup --huge-pages 160MiB --nic {card} --apply --yes")
    taken = Router(guest, "taken", number, f"pci://{card}", KERNEL, options)
    kernel = Router(guest, "kernel", KERNEL, f"dev://{interface}", number)
    taken.serve()
    kernel.route()
    guest.wait("namehop --transport unix:///run/taken.sock route list | grep /far")
    yield number, card, taken, kernel
    taken.stop()
    kernel.stop()
    guest.run("namehop setup --undo --yes")


def test_packets_go_both_ways_by_every_encapsulation(guest, network):
    number, card, taken, kernel = network
    for prefix in ("ether", "vlan", "udp4", "udp6", "group"):
        code, text = kernel.ping(prefix)
        assert code == 0, prefix + text + taken.log() + json.dumps(kernel.faces()) + taken.command("status")
    faces = taken.faces()
    assert faces["ether"]["local_uri"] == f"pci://{card}"
    assert faces["ether"]["mtu_bytes"] == (8800 if CARDS[number] == "vmxnet3" else 1500)


def test_jumbo_frames_are_carried_whole(guest, network):
    number, card, taken, kernel = network
    if CARDS[number] != "vmxnet3":
        pytest.skip("one kind of card is enough")
    taken.serve("/large", "--size 8000")
    guest.wait("namehop --transport unix:///run/taken.sock route list | grep /large")
    kernel.command(f"route add /large {kernel.faces()['ether']['face_id']}")
    before = kernel.faces()["ether"]
    code, text = kernel.command("ping /large --count 3 --interval 50ms --timeout 5s", check=False)
    assert code == 0 and "8000 bytes" in text, text
    assert kernel.faces()["ether"]["in_data"] - before["in_data"] == 3
    assert "reassembl" not in kernel.command("status --json")


def test_the_kernel_has_what_is_not_ndn(guest, network):
    number, card, taken, kernel = network
    if CARDS[number] != "e1000e" or number == KERNEL:
        pytest.skip("one kind of card is enough")
    interface = interface_of(guest, KERNEL)
    assert "02:00:00:00:00:00" in guest.run("cat /sys/class/net/shared/address")
    guest.run(f"ip address add 203.0.113.1/24 dev {interface}")
    # An ARP request leaves through the tested card, and the reply from the other card returns through it.
    answer = guest.run("arping -D -I shared -c 3 -w 10 203.0.113.1; true")
    guest.run(f"ip address del 203.0.113.1/24 dev {interface}")
    assert "02:00:00:00:00:01" in answer.lower(), answer + taken.command("status") + taken.log()


def test_the_link_goes_down_and_comes_back(guest, network):
    number, card, taken, kernel = network
    guest.qmp("set_link", name=f"card{number}", up=False)
    guest.wait("grep -q 'link state.*is_up=false' /tmp/taken.log")
    assert kernel.ping("ether", 1)[0] != 0
    guest.qmp("set_link", name=f"card{number}", up=True)
    guest.wait("grep 'link state' /tmp/taken.log | tail -n 1 | grep -q 'is_up=true' || { tail -n 3 /tmp/taken.log; false; }")
    assert kernel.ping("ether")[0] == 0


def test_a_router_that_has_a_card_keeps_setup_from_taking_it_back(guest, network):
    number, card, taken, kernel = network
    if number != 0:
        pytest.skip("one kind of card is enough")
    code, text = guest.run("namehop setup --undo --yes", check=False)
    assert code == 1 and "namehop (process" in text, text
    assert kernel.ping("ether")[0] == 0
    guest.run(f"namehop setup --huge-pages 160MiB --nic {card} --apply --yes")


def test_a_card_that_is_pulled_out_is_given_up_and_used_again_when_it_is_back(guest, network):
    number, card, taken, kernel = network
    if number != 0:
        pytest.skip("one kind of card is enough")
    guest.qmp("device_del", id=f"card{number}")
    guest.wait(f"test ! -e /sys/bus/pci/devices/{card}")
    assert "network card or interface removed" in taken.log()
    assert taken.command("status", check=False)[0] == 0, "the router goes on"
    guest.qmp("device_add", driver="e1000e", id=f"card{number}", netdev=f"net{number}", bus=f"port{number}", mac="02:00:00:00:00:00")
    guest.wait(f"test -e /sys/bus/pci/devices/{card}")
    take_by_vfio(guest, card)
    guest.wait("grep 'link state' /tmp/taken.log | tail -n 1 | grep -q 'is_up=true' || { tail -n 3 /tmp/taken.log; false; }")
    assert kernel.ping("ether")[0] == 0
