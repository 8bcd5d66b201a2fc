"""Counters of faces on ports agree with a tshark capture: frames, bytes, fragments, Interests and Data in both directions. Covers every
kind of link that a port can carry, and kernel sockets over IPv6.
"""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from applications import published, same
from packets import elements, split_element
from port_links import Link, ip, needs_root, ports, route
from test_capture import DATA, FRAGMENT, INTEREST, LP_PACKET, Capture

pytestmark = needs_root

SEGMENTS, SEGMENT_BYTES = 12, 4_000
# Frames that every path carries. So no path is probed for its MTU between the capture and the reading of the counters.
MTU = "1200"
FRAG_INDEX = 0x52
OWN_V4, OWN_V6 = ["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]
KERNEL_V6 = ["2001:db8:1::1", "2001:db8:1::2"]
# By kind of link: the tshark filter for its frames, the remote URI of a face, and the suffix of its local URI.
KINDS = {
    "ethernet": ("eth.type == 0x8624 and not vxlan", lambda link, end: link.uri(1 - end), ""),
    "vlan": ("vlan.id == 7", lambda link, end: link.uri(1 - end), "?vlan=7"),
    "udp4": ("ip and udp.port == 6363", lambda _, end: f"udp4://{OWN_V4[1 - end]}:6363", ""),
    "udp6": (f"ipv6 and udp.port == 6363 and ipv6.addr == {OWN_V6[0]}", lambda _, end: f"udp6://[{OWN_V6[1 - end]}]:6363", ""),
    "vxlan4": ("ip and vxlan.vni == 42", lambda _, end: f"vxlan4://{OWN_V4[1 - end]}?vni=42", ""),
    "vxlan6": ("ipv6 and vxlan.vni == 43", lambda _, end: f"vxlan6://[{OWN_V6[1 - end]}]?vni=43", ""),
}
SOCKET = f"ipv6 and udp.port == 6363 and ipv6.addr == {KERNEL_V6[0]}"


def frames(file, wanted, senders):
    """Returns the NDN frames that each sender has sent over a kind of link."""
    fields = ["-e", "eth.src", "-e", "data.data", "-e", "udp.payload"]
    command = ["tshark", "-r", str(file), "-n", "-Y", wanted, "-T", "fields", "-E", "separator=/t", *fields]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {sender: [] for sender in senders}
    for line in text.splitlines():
        addresses, payload, datagram = line.split("\t")
        # The frame may end in padding.
        _, packet, _ = split_element(bytes.fromhex((payload or datagram).replace(":", "")))
        # In a tunnel, the frame has further addresses.
        found[addresses.split(",")[0]].append(packet)
    return [found[sender] for sender in senders]


def seen(packets):
    """Returns the counters that a face should have for these packets. Only the first fragment of a packet shows its kind."""
    counts = Counter(frames=len(packets), bytes=sum(map(len, packets)))
    for packet in packets:
        fields = elements(elements(packet)[LP_PACKET]) if packet[0] == LP_PACKET else {FRAGMENT: packet}
        is_later = int.from_bytes(fields.get(FRAG_INDEX, b"\0"), "big") > 0
        if is_later:
            counts["later fragments"] += 1
        # An IDLE packet carries no network packet.
        elif FRAGMENT in fields:
            counts[{INTEREST: "interests", DATA: "data"}[fields[FRAGMENT][0]]] += 1
    return counts


def frames_by_face(router):
    """Returns the frame counters of each face and direction from the metrics."""
    program = f"import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{router.metrics}/metrics').read().decode())"
    text = subprocess.run([*router.prefix, sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    lines = re.findall(r"^namehop_face_frames_total\{(.*)\} (\d+)$", text, re.MULTILINE)
    labelled = [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), int(count)) for labels, count in lines]
    return {(int(labels["face"]), labels["direction"]): count for labels, count in labelled}


def counted(router):
    """Returns the counters of each face and direction."""
    frames, counts = frames_by_face(router), {}
    for face in router.json("face", "list"):
        for direction in ("in", "out"):
            kinds = {kind: face[f"{direction}_{kind}"] for kind in ("bytes", "interests", "data")}
            counts[face["face_id"], direction] = Counter(frames=frames.get((face["face_id"], direction), 0), **kinds)
    return counts


@pytest.mark.parametrize("workers", [1, 2])
def test_tshark_counts_what_faces_of_ports_count(make_router, tmp_path, workers):
    content = tmp_path / "object.bin"
    content.write_bytes(os.urandom(SEGMENTS * SEGMENT_BYTES))
    with Link(f"pcc{os.getpid()}") as link:
        routers = []
        for end, name in enumerate(["near", "far"]):
            ip("-n", link.namespaces[end], "address", "add", f"{KERNEL_V6[end]}/64", "dev", link.devices[end], "nodad")
            addresses = f'[[port]]\nuri = "{link.local(end)}"\naddresses = ["{OWN_V4[end]}/24", "{OWN_V6[end]}/64"]'
            # A long timeout, so that no liveness probes are sent between the capture and the reading of the counters.
            sockets = f'[faces]\nblocked_timeout_s = 600\n[faces.udp]\nlisten = ["[{KERNEL_V6[end]}]:6363"]\nmtu = 1400'
            router = make_router(ports(end, addresses, sockets), name=name, start=False)
            router.prefix = link.inside(end)
            routers.append(router.start())
        near, far = routers
        faces = {}
        options = ["--mtu", MTU, "--persistency", "permanent"]
        for kind, (_, remote, of_local) in KINDS.items():
            faces[kind] = [
                router.json("face", "create", remote(link, end), "--local", link.local(end) + of_local, *options)["face_id"]
                for end, router in enumerate(routers)
            ]
        faces["socket"] = [
            router.json("face", "create", f"udp6://[{KERNEL_V6[1 - end]}]:6363", *options, "--keep-alive", "off")["face_id"]
            for end, router in enumerate(routers)
        ]
        file = tmp_path / "capture.pcapng"
        with Capture(link, 0, file):
            for kind, (there, _) in faces.items():
                route(near, f"/{kind}", there)
                with published(far, f"/{kind}", content, "-s", SEGMENT_BYTES):
                    assert same(near.namehop("cat", f"/{kind}", text=False).stdout, content), kind
        counters = [counted(router) for router in routers]
        for kind, numbers in faces.items():
            wanted = KINDS[kind][0] if kind in KINDS else SOCKET
            for sender, sent in enumerate(frames(file, wanted, [link.address(end) for end in (0, 1)])):
                wire = seen(sent)
                assert (wire["later fragments"] >= 2 * SEGMENTS) == (sender == 1), (kind, wire)
                assert wire["data" if sender else "interests"] >= SEGMENTS, (kind, wire)
                wire.pop("later fragments", None)
                for end, direction in [(sender, "out"), (1 - sender, "in")]:
                    assert counters[end][numbers[end], direction] == wire, (kind, sender, direction)
        # The router also sees the kernels' neighbour discovery.
        assert all(set(router.json("status")["drops"].get("link", {})) <= {"foreign-frame"} for router in routers)
