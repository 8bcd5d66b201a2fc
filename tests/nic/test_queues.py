"""Multi-queue cards, and a router with a worker for each queue: frames use all queues that the emulated card supports."""

import json

import pytest
from test_pci import CONFIG, Router, address_of, interface_of

# The emulated vmxnet3 and e1000e send on several queues, but were observed to receive only on the first.
CARDS = ["virtio-net,queues=2", "e1000e", "vmxnet3", "e1000e"]
KERNEL = 1
NAMES = 8
UDP = 'uri = "udp4://192.0.2.1{peer}:6363"\nlocal = "{port}'
TWO_WORKERS = CONFIG.replace("[forwarding]\n", "[forwarding]\nworkers = 2\n").replace(UDP, f"{UDP}?source_port=name")
assert TWO_WORKERS.count("source_port") == 1


@pytest.fixture(params=[0, 2, 3], ids=["virtio-net", "vmxnet3", "e1000e"])
def network(guest, request):
    number = request.param
    card, interface = address_of(guest, number), interface_of(guest, KERNEL)
    guest.run(f"ip link set {interface} mtu 1500 up")
    guest.run(f"namehop setup --huge-pages 160MiB --nic {card} --apply --yes")
    taken = Router(guest, "taken", number, f"pci://{card}", KERNEL, config=TWO_WORKERS)
    kernel = Router(guest, "kernel", KERNEL, f"dev://{interface}", number, config=TWO_WORKERS)
    taken.serve()
    kernel.command(f"route add /far {kernel.faces()['udp4']['face_id']}")
    guest.wait("namehop --transport unix:///run/taken.sock route list | grep /far")
    yield number, taken, kernel
    taken.stop()
    kernel.stop()
    guest.run("namehop setup --undo --yes")


def queues(router):
    """Returns received and sent frames of each queue, in order of queue number."""
    workers = json.loads(router.command("status --json"))["workers"]
    found = {queue["queue"]: queue for worker in workers for queue in worker["queues"]}
    return [(found[number]["received_frames"], found[number]["sent_frames"]) for number in sorted(found)]


def test_frames_come_and_go_by_the_queues_that_there_are(guest, network):
    number, taken, kernel = network
    for name in range(NAMES):
        code, text = kernel.ping(f"{name}/object")
        assert code == 0, text + taken.log() + taken.command("status")
    for prefix in ("ether", "udp6"):
        face = kernel.faces()[prefix]["face_id"]
        kernel.command(f"route add /far/{prefix} {face}")
        code, text = kernel.ping(prefix)
        assert code == 0, text + taken.log() + taken.command("status")
    found = queues(taken)
    print(CARDS[number], found, [line for line in taken.log().splitlines() if "queues" in line])
    received, sent = zip(*found)
    assert len(found) == 2 and all(sent), found
    assert received[0] > 0 and (received[1] > 0) == CARDS[number].startswith("virtio-net"), found
    assert all(received > 0 and sent > 0 for received, sent in queues(kernel)), "packet sockets of the kernel's card"
