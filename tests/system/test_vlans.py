"""Ethernet faces in VLANs (IEEE 802.1Q): several on one interface, beside faces without a tag."""

import json
import os
import struct
import subprocess
import sys

from applications import published, same, wait_for_route
from conftest import PATIENCE, wait_until
from packets import interest
from port_links import ETHERTYPE, GROUP, content, drops, fetch, frame, link, needs_root, route, send_frames, start

pytestmark = needs_root

VLANS = [None, 7, 4094]

# Prints the number of NDN frames of each VLAN (0 for untagged frames) when its input ends. Outgoing frames contain their tag. The kernel
# removes the tag of incoming frames and reports it separately.
COUNT_FRAMES = """
import collections, json, socket, struct, sys
SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 263, 8, 1 << 4
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL: also what leaves
tap.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
tap.bind((sys.argv[1], 3))
print("listening", flush=True)
sys.stdin.read()
tap.setblocking(False)
counts = collections.Counter()
try:
    while True:
        frame, ancillary, _, _ = tap.recvmsg(65536, 256)
        status, _, _, _, _, tag, _ = struct.unpack("=IIIHHHH", ancillary[0][2])
        if frame[12:14] == b"\\x81\\x00":
            tag, frame = int.from_bytes(frame[14:16], "big"), frame[:12] + frame[16:]
        elif not status & VLAN_VALID:
            tag = 0
        if frame[12:14] == b"\\x86\\x24":
            counts[tag] += 1
except BlockingIOError:
    print(json.dumps(counts))
"""


def local(link, end, vlan):
    return link.local(end) + (f"?vlan={vlan}" if vlan else "")


def create(router, link, end, vlan, uri=None):
    uri = uri or link.uri(1 - end)
    return router.json("face", "create", uri, "--local", local(link, end, vlan), "--persistency", "permanent")["face_id"]


def faces(router, link, end):
    """Returns the faces of the interface, by VLAN."""
    listed = {face["local_uri"]: face for face in router.json("face", "list")}
    return {vlan: listed.get(local(link, end, vlan)) for vlan in VLANS}


def test_vlans_and_frames_without_tag_share_an_interface(make_router, link, tmp_path):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    for vlan in VLANS:
        route(near, f"/vlan/{vlan}", create(near, link, 0, vlan))
        create(far, link, 1, vlan)
    file = tmp_path / "object.bin"
    # Full-size segments, because VLAN tags do not reduce the MTU.
    file.write_bytes(os.urandom(200_000))
    for vlan in VLANS:
        before = faces(near, link, 0)
        count = subprocess.Popen(
            [*link.inside(0), sys.executable, "-c", COUNT_FRAMES, link.devices[0]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        assert count.stdout.readline()
        with published(far, f"/vlan/{vlan}", file):
            assert same(fetch(near, f"/vlan/{vlan}"), file)
        counts = count.communicate(timeout=PATIENCE)[0].strip()
        assert list(json.loads(counts)) == [str(vlan or 0)], "nothing goes another way"
        after = faces(near, link, 0)
        for other in VLANS:
            received = after[other]["in_data"] - before[other]["in_data"]
            assert (received > 20) == (other == vlan), f"{received} Data in VLAN {other} while VLAN {vlan} was used"
    found = faces(near, link, 0)
    assert all(face["mtu_bytes"] == 1500 and face["remote_uri"] == link.uri(1) for face in found.values())
    assert near.json("status")["drops"].get("link", {}) == far.json("status")["drops"].get("link", {}) == {}

    # When one face is destroyed the others stay, and the kernel keeps the frames of its VLAN.
    near.namehop("face", "destroy", str(found[7]["face_id"]))
    assert faces(near, link, 0)[7] is None
    packet = struct.pack("!HH", 7, ETHERTYPE) + interest("/x", nonce=b"abcd")
    send_frames(link, 1, [frame(link.address(0), link.address(1), 0x8100, packet)] * 2000)
    near.namehop("cs", "erase", "/vlan")
    with published(far, "/vlan/4094", file):
        assert same(fetch(near, "/vlan/4094"), file)
    assert drops(near, "unknown-sender") == drops(near, "receive-ring-full") == 0


def test_faces_in_vlans_are_there_after_a_restart(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    # A second face to the same neighbour, without a tag. The route leads to the tagged face only.
    create(near, link, 0, None)
    route(near, "/object", create(near, link, 0, 7))
    create(far, link, 1, 7)
    near.stop()
    near.start()
    with published(far, "/object", content):
        wait_for_route(near, "/object")
        assert same(fetch(near, "/object"), content)
    restored = faces(near, link, 0)
    assert restored[7]["in_data"] > 300 and restored[None]["in_data"] == 0


def test_a_multicast_group_is_one_in_each_vlan(make_router, link, content):
    group = f"ether://[{GROUP}]"
    face = lambda end: f'[[face]]\nuri = "{group}"\nlocal = "{local(link, end, 7)}"\n'
    near = start(make_router, link, 0, face(0), f'[[route]]\nprefix = "/object"\nnexthop = "{group}"\n')
    far = start(make_router, link, 1, face(1), f'[[port]]\nuri = "{link.local(1)}"\nmulticast = true\non_demand = true\n')
    wait_for_route(near, "/object")
    wait_until(lambda: faces(far, link, 1)[7], what="the face of the other end")
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
    of_far = faces(far, link, 1)
    assert of_far[7]["link_type"] == "multi-access" and of_far[7]["out_data"] > 300
    assert of_far[None]["out_data"] == 0
    # On-demand faces are enabled for untagged frames only.
    for vlan, made in [(7, 0), (None, 1)]:
        sender = f"02:00:00:00:00:0{made}"
        packet = interest("/x", nonce=os.urandom(4))
        tagged = frame(link.address(1), sender, 0x8100, struct.pack("!HH", 7, ETHERTYPE) + packet)
        untagged = frame(link.address(1), sender, ETHERTYPE, packet)
        before = drops(far, "unknown-sender")
        send_frames(link, 0, [tagged if vlan else untagged])
        is_made = lambda: any(face["remote_uri"] == f"ether://[{sender}]" for face in far.json("face", "list"))
        if made:
            wait_until(is_made, what="a face for the sender")
        else:
            wait_until(lambda: drops(far, "unknown-sender") == before + 1, what="a frame of nobody")
            assert not is_made()


def test_what_is_no_vlan_is_refused(make_router, link):
    near = start(make_router, link, 0)
    for wrong in [0, 4095]:
        result = near.namehop("face", "create", link.uri(1), "--local", f"{link.local(0)}?vlan={wrong}", check=False)
        assert result.returncode != 0 and "dev://eth0?vlan=7" in result.stderr
