"""Ethernet faces on the two ends of a veth pair in network namespaces."""

import json
import os
import signal
import struct
import subprocess
import sys
import time

from applications import face_to, published, same, wait_for_route
from conftest import PATIENCE, let_others_enter, wait_until
from ndn.encoding import Name, parse_data, parse_interest, parse_lp_packet_v2
from packets import interest, split_element
from port_links import (
    ETHERTYPE, GROUP, connect, content, drops, fetch, frame, link, link_state, needs_root, ports, processor_seconds, route,
    send_frames, start, threads,
)

pytestmark = needs_root


class Capture:
    """Captures all NDN frames at one end of a link, in both directions, from its construction on."""

    PROGRAM = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL: also what leaves
tap.bind((sys.argv[1], 3))
print("listening", flush=True)
sys.stdin.read()
tap.setblocking(False)
try:
    while True:
        print(tap.recv(65536).hex())
except BlockingIOError:
    pass
"""

    def __init__(self, link, end):
        command = [*link.inside(end), sys.executable, "-c", self.PROGRAM, link.devices[end]]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline()

    def frames(self):
        """Returns destination, source and payload of every frame."""
        lines, _ = self.process.communicate(timeout=PATIENCE)
        frames = [bytes.fromhex(line) for line in lines.splitlines()]
        return [
            (frame[:6].hex(":"), frame[6:12].hex(":"), frame[14:])
            for frame in frames if frame[12:14] == ETHERTYPE.to_bytes(2, "big")
        ]


def decode(payloads):
    """Returns the names of the Interests and Data in the payloads of frames, decoded by python-ndn."""
    interests, data = [], []
    for payload in payloads:
        kind, packet, padding = split_element(payload)
        assert not padding.strip(b"\0"), "nothing but zeros behind the packet"
        assert not padding or len(payload) == 46, "only short frames are padded"
        if kind == 0x64:
            fragment = parse_lp_packet_v2(packet).fragment
            if fragment is None:
                # An IDLE packet, by which routers announce that they understand PIT tokens.
                continue
            packet = bytes(fragment)
        if packet[0] == 5:
            interests.append(Name.to_str(parse_interest(packet)[0]))
        else:
            data.append(Name.to_str(parse_data(packet)[0]))
    return interests, data


def test_frames_on_the_wire_are_ndn(make_router, link, tmp_path):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    route(near, "/object", there)
    small = tmp_path / "small.bin"
    small.write_bytes(os.urandom(20_000))
    with published(far, "/object", small, "--segment-size", "1000"):
        capture = Capture(link, 0)
        assert same(fetch(near, "/object"), small)
        frames = capture.frames()
    here, peer = link.address(0), link.address(1)
    assert {(destination, source) for destination, source, _ in frames} == {(peer, here), (here, peer)}
    interests, data = decode([payload for destination, _, payload in frames if destination == peer])
    assert not data and len(set(interests)) == 21, "20 segments, after the discovery of the version"
    interests, data = decode([payload for destination, _, payload in frames if destination == here])
    assert not interests and len(set(data)) == 21, "20 segments and the answer to the discovery"


def test_a_unicast_face_is_made_used_and_destroyed_at_run_time(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    assert "ports" not in threads(near), "DPDK starts with the first port"
    there, back = connect(near, far, link)
    assert "ports" in threads(near) and any(name.startswith("worker") for name in threads(near))
    route(near, "/object", there)
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
        face = face_to(near, link.uri(1))
        assert (face["local_uri"], face["link_type"], face["mtu_bytes"]) == (link.local(0), "point-to-point", 1500)
        assert face["in_data"] > 300 and face["persistency"] == "permanent"
        found = near.json("face", "create", link.uri(1), "--local", link.local(0))
        assert (found["face_id"], found["created"]) == (there, False), "the same face is found"

        near.namehop("face", "destroy", str(there))
        assert not [face for face in near.json("face", "list") if face["remote_uri"] == link.uri(1)]
        assert near.namehop("cat", "/object/other", check=False).returncode != 0
        wait_until(lambda: f"port closed port={link.local(0)}" in near.log.read_text(), what="an unused port is closed")

        again = near.json("face", "create", link.uri(1), "--local", link.local(0), "--mtu", "500")["face_id"]
        assert again != there
        route(near, "/object", again)
        near.namehop("cs", "erase", "/object")
        assert same(fetch(near, "/object"), content)
    assert near.json("status")["drops"].get("link", {}).get("no-buffer", 0) == 0
    assert face_to(far, link.uri(0))["face_id"] == back


def test_what_was_made_at_run_time_is_there_after_a_restart(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    route(near, "/object", there)
    near.stop()
    near.start()
    with published(far, "/object", content):
        wait_for_route(near, "/object")
        assert same(fetch(near, "/object"), content)
    assert face_to(near, link.uri(1))["local_uri"] == link.local(0)


def test_multicast_faces_by_configuration(make_router, link, content):
    group = f"ether://[{GROUP}]"
    routes = f'[[face]]\nuri = "{group}"\nlocal = "{link.local(0)}"\n[[route]]\nprefix = "/object"\nnexthop = "{group}"\n'
    near = start(make_router, link, 0, routes)
    far = start(make_router, link, 1, f'[[port]]\nuri = "{link.local(1)}"\nmulticast = true\n')
    face = face_to(far, group)
    assert (face["local_uri"], face["link_type"], face["persistency"]) == (link.local(1), "multi-access", "permanent")
    # The router does not wait for a port that opens slowly.
    wait_for_route(near, "/object")
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
    assert face_to(near, group)["in_data"] > 300
    assert face_to(far, group)["out_data"] > 300


def test_an_unknown_sender_makes_a_face_only_where_that_is_allowed(make_router, link, content):
    near = start(make_router, link, 0)
    far = start(make_router, link, 1, f'[[port]]\nuri = "{link.local(1)}"\non_demand = true\n')
    there = near.json("face", "create", link.uri(1), "--local", link.local(0))["face_id"]
    route(near, "/object", there)
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
    face = face_to(far, link.uri(0))
    assert (face["persistency"], face["local_uri"]) == ("on-demand", link.local(1))

    # The near router has a face, but frames from other senders belong to no face.
    before = drops(near, "unknown-sender")
    sender = "02:00:00:00:00:99"
    send_frames(link, 1, [frame(link.address(0), sender, ETHERTYPE, interest("/x", nonce=os.urandom(4)))] * 3)
    wait_until(lambda: drops(near, "unknown-sender") == before + 3, what="three frames of nobody")


def test_unknown_senders_leave_places_for_applications(make_router, link):
    near = start(make_router, link, 0, f'[[port]]\nuri = "{link.local(0)}"\non_demand = true\n[faces]\nmax_faces = 100\n')
    wait_until(lambda: "port opened" in near.log.read_text(), what="the port is there")
    here = link.address(0)
    packet = lambda n: frame(here, f"02:00:00:00:01:{n:02x}", ETHERTYPE, interest(f"/x/{n}", nonce=os.urandom(4)))
    send_frames(link, 1, [packet(n) for n in range(200)])
    # On-demand faces may use a third of the unreserved three quarters of 100 faces. Some idle ones are evicted for new senders. Each query
    # is a connection of an application.
    left_out = lambda: drops(near, "too-many-faces") + drops(near, "face-evicted")
    wait_until(lambda: left_out() == 175, what="places for 25 senders")
    assert sum(face["persistency"] == "on-demand" for face in near.json("face", "list") if "ether" in face["remote_uri"]) == 25
    near.namehop("face", "create", link.uri(1), "--local", link.local(0))


def test_frames_of_nobody_are_named_drops(make_router, link):
    near = start(make_router, link, 0)
    near.json("face", "create", "ether://[02:00:00:00:00:99]", "--local", link.local(0))
    here, peer = link.address(0), "02:00:00:00:00:99"
    packet = interest("/x", nonce=b"abcd")
    for name, bad in {
        "foreign-frame": frame("02:00:00:00:00:77", peer, ETHERTYPE, packet),
        "unknown-group": frame("33:33:00:00:00:01", peer, ETHERTYPE, packet),
        "unknown-sender": frame(here, "02:00:00:00:00:55", ETHERTYPE, packet),
        "malformed-frame": frame(here, peer, ETHERTYPE, b"\x05\xfd\x20\x00"),
    }.items():
        before = drops(near, name)
        send_frames(link, 1, [bad] * 5)
        wait_until(lambda: drops(near, name) >= before + 5, what=name)
    # The kernel keeps frames that are not NDN or have a VLAN tag. Any number of them fills no ring.
    tagged = frame(here, peer, 0x8100, b"\0\5" + struct.pack("!H", ETHERTYPE) + packet)
    send_frames(link, 1, [frame(here, peer, 0x88B5, packet), tagged] * 2000)
    send_frames(link, 1, [frame(here, peer, ETHERTYPE, interest("/x", nonce=os.urandom(4)))])
    wait_until(lambda: face_to(near, "ether://[02:00:00:00:00:99]")["in_interests"] == 1, what="the face lives on")
    assert drops(near, "not-ndn-frame") == drops(near, "receive-ring-full") == 0


def test_frames_that_the_router_has_no_time_for_are_named_drops(make_router, link):
    near = start(make_router, link, 0)
    near.json("face", "create", "ether://[02:00:00:00:00:99]", "--local", link.local(0))
    here = link.address(0)
    packets = [frame(here, "02:00:00:00:00:99", ETHERTYPE, interest(f"/x/{n}", nonce=os.urandom(4))) for n in range(3000)]
    near.process.send_signal(signal.SIGSTOP)
    send_frames(link, 1, packets)
    near.process.send_signal(signal.SIGCONT)
    arrived = lambda: face_to(near, "ether://[02:00:00:00:00:99]")["in_interests"]
    wait_until(lambda: arrived() + drops(near, "receive-ring-full") == 3000, what="each frame arrived or was counted")
    assert arrived() >= 1000, "those that the ring holds"


def test_a_link_goes_down_and_comes_up_again(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    route(near, "/object", there)
    with published(far, "/object", content):
        for _ in range(2):
            near.namehop("cs", "erase", "/object")
            assert same(fetch(near, "/object"), content)
            link.set("down", ends=[0])
            wait_until(lambda: link_state(near) == "down", what="the break is noticed")
            refused = near.namehop("ping", "/object/nothing", "-c", "1", "--json", check=False)
            assert json.loads(refused.stdout)["nacks"] == 1
            assert near.json("face", "show", there)["is_up"] is False
            assert "down" in near.namehop("face", "list").stdout
            link.set("up", ends=[0])
            wait_until(lambda: link_state(near) == "up", what="the link is back")
            wait_until(lambda: near.json("face", "show", there)["is_up"], what="the face is up")
        near.namehop("cs", "erase", "/object")
        assert same(fetch(near, "/object"), content)


def test_an_interface_is_taken_away_and_made_again(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    old = [link.address(0), link.address(1)]
    there, _ = connect(near, far, link)
    route(near, "/object", there)
    link.remove()
    wait_until(lambda: link_state(near) == "down", what="the interface is gone")
    link.make()
    # Restore the old addresses, because each peer's face has the other peer's address.
    for end in (0, 1):
        link.set("address", old[end], ends=[end])
    link.set("mtu", "9000")
    with published(far, "/object", content):
        wait_until(lambda: face_to(near, f"ether://[{old[1]}]")["mtu_bytes"] == 8800, what="jumbo frames")
        wait_until(lambda: face_to(far, f"ether://[{old[0]}]")["mtu_bytes"] == 8800, what="jumbo frames")
        assert same(fetch(near, "/object"), content)


def test_an_interface_that_is_made_again_between_two_looks_is_another_one(make_router, link, content):
    """Scripts that reconfigure a network may recreate an interface with the same address and MTU."""
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    route(near, "/object", there)
    addresses = [link.address(0), link.address(1)]
    ends = [["netns", link.namespaces[end], "address", addresses[end]] for end in (0, 1)]
    make = ["ip", "link", "add", link.devices[0], *ends[0], "up", "type", "veth", "peer", "name", link.devices[1], *ends[1]]
    commands = [["ip", "-n", link.namespaces[0], "link", "delete", link.devices[0]], make]
    commands.append(["ip", "-n", link.namespaces[1], "link", "set", link.devices[1], "up"])
    # Stopped routers cannot see the state between removal and recreation.
    for router in (near, far):
        router.process.send_signal(signal.SIGSTOP)
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    for router in (near, far):
        router.process.send_signal(signal.SIGCONT)
    for router in (near, far):
        wait_until(lambda: "port reopened" in router.log.read_text(), what="the other interface is noticed")
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)


def test_frames_for_strangers_have_the_size_that_the_link_has_now(make_router, link, content):
    near = start(make_router, link, 0)
    far = start(make_router, link, 1, f'[[port]]\nuri = "{link.local(1)}"\non_demand = true\n')
    wait_until(lambda: "port opened" in far.log.read_text(), what="the port is there")
    link.set("mtu", "1300")
    wait_until(lambda: "port reopened" in far.log.read_text(), what="the new MTU is noticed")
    there = near.json("face", "create", link.uri(1), "--local", link.local(0))["face_id"]
    route(near, "/object", there)
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
    assert face_to(far, link.uri(0))["mtu_bytes"] == 1300
    assert drops(far, "send-failed") == 0


def test_the_router_sleeps_when_nothing_happens(make_router, link):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    connect(near, far, link)

    def share():
        """Returns the share of a CPU that the router uses, measured over five seconds."""
        before, begin = processor_seconds(near), time.monotonic()
        time.sleep(5)
        return (processor_seconds(near) - before) / (time.monotonic() - begin)

    # The router may use more CPU time while it starts.
    wait_until(lambda: share() < 0.03, what="the router takes nearly nothing of a processor")


def test_addresses_of_the_port_itself_are_refused(make_router, link):
    near = start(make_router, link, 0)
    for address, reason in [(link.uri(0), "of dev://veth0 itself"), ("ether://[00:00:00:00:00:00]", "address of a peer")]:
        refused = near.namehop("face", "create", address, "--local", link.local(0), check=False)
        assert refused.returncode != 0 and reason in refused.stderr, refused.stderr
    assert "port closed" in near.log.read_text(), "nothing is left behind"
    refused = near.namehop("face", "create", link.uri(1), "--local", link.local(0), "--mtu", "63", check=False)
    assert refused.returncode != 0 and "at least 64 bytes" in refused.stderr, refused.stderr


def test_without_permission_the_command_says_what_is_missing(make_router, link):
    near = make_router(ports(0), name="near", start=False)
    near.folder.chmod(0o777)
    let_others_enter(near.folder)
    near.prefix = [*link.inside(0), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    near.start()
    refused = near.namehop("face", "create", link.uri(1), "--local", link.local(0), check=False)
    assert refused.returncode != 0 and "CAP_NET_RAW" in refused.stderr, refused.stderr
    refused = near.namehop("face", "create", link.uri(1), "--local", "dev://nope0", check=False)
    assert refused.returncode != 0 and "nope0" in refused.stderr, refused.stderr
    socket_path = near.folder / "memif.sock"
    # A memif needs no privileges.
    near.namehop("face", "create", f"memif://{socket_path}?id=0")
