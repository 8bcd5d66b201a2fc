"""Faces over ports: Ethernet on the two ends of a veth pair in network namespaces, and memif between processes."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from conftest import PATIENCE, wait_until
from ndn.encoding import Name, parse_data, parse_interest, parse_lp_packet_v2
from packets import interest, split_element
from test_links import face_to, published, same

ETHERTYPE = 0x8624
GROUP = "01:00:5e:00:17:aa"
MEGABYTE = 1_000_000

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="ports over veth pairs and in network namespaces need root")


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


class Link:
    """A veth pair between two network namespaces; both are removed at the end."""

    def __init__(self, name):
        self.name = name
        self.namespaces = [f"{name}a", f"{name}b"]
        self.devices = ["veth0", "veth1"]

    def __enter__(self):
        for namespace in self.namespaces:
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        self.make()
        return self

    def __exit__(self, *_):
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def make(self):
        (left, right), (one, other) = self.namespaces, self.devices
        ip("link", "add", one, "netns", left, "type", "veth", "peer", "name", other, "netns", right)
        self.set("up")

    def remove(self):
        ip("-n", self.namespaces[0], "link", "delete", self.devices[0])

    def set(self, *what, ends=(0, 1)):
        for end in ends:
            ip("-n", self.namespaces[end], "link", "set", self.devices[end], *what)

    def inside(self, end):
        return ["ip", "netns", "exec", self.namespaces[end]]

    def address(self, end):
        command = ["ip", "-n", self.namespaces[end], "-brief", "link", "show", self.devices[end]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[2]

    def uri(self, end):
        return f"ether://[{self.address(end)}]"

    def local(self, end):
        return f"dev://{self.devices[end]}"


@pytest.fixture
def link():
    with Link(f"nh{os.getpid()}") as link:
        yield link


@pytest.fixture
def content(tmp_path):
    file = tmp_path / "object.bin"
    file.write_bytes(os.urandom(3 * MEGABYTE))
    return file


def ports(processor, *lines):
    """Configuration of ports; fewer buffers than usual save the tests some time."""
    forwarding = "[forwarding]\nsmall_buffers = 8192\nlarge_buffers = 2048\n"
    allowed = 'interfaces = ["all"]\nmemif_folders = ["/"]'
    return "\n".join([f"{forwarding}[ports]\nworker_processor = {processor % os.cpu_count()}\n{allowed}", *lines, ""])


def start(make_router, link, end, *lines):
    router = make_router(ports(end, *lines), name="near" if end == 0 else "far", start=False)
    router.prefix = link.inside(end)
    return router.start()


def connect(near, far, link):
    """A unicast face at each end."""
    faces = []
    for end, router in enumerate([near, far]):
        arguments = ["face", "create", link.uri(1 - end), "--local", link.local(end), "--persistency", "permanent"]
        faces.append(router.json(*arguments)["face_id"])
    return faces


def route(router, prefix, face):
    router.namehop("route", "add", prefix, face)


def fetch(router, name, **options):
    return router.namehop("cat", name, text=False, **options).stdout


def drops(router, name):
    return router.json("status")["drops"].get("link", {}).get(name, 0)


def link_state(router):
    """What the router said last of a link: "up" or "down"; None before that."""
    states = [line for line in router.log.read_text().splitlines() if "link state" in line]
    return states and ("up" if states[-1].endswith("is_up=true") else "down") or None


def is_connected(router):
    return link_state(router) == "up"


def threads(router):
    folder = f"/proc/{router.process.pid}/task"
    names = []
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/comm") as comm:
            names.append(comm.read().strip())
    return names


def processor_seconds(router):
    """Time of all threads since the start."""
    with open(f"/proc/{router.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Capture:
    """All NDN frames at one end of a link, whichever way they go, from the moment on that it is made."""

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
        """Destination, source and payload of every frame."""
        lines, _ = self.process.communicate(timeout=PATIENCE)
        frames = [bytes.fromhex(line) for line in lines.splitlines()]
        return [
            (frame[:6].hex(":"), frame[6:12].hex(":"), frame[14:])
            for frame in frames if frame[12:14] == ETHERTYPE.to_bytes(2, "big")
        ]


def decode(payloads):
    """Names of the Interests and Data in the payloads of frames, by python-ndn."""
    interests, data = [], []
    for payload in payloads:
        kind, packet, padding = split_element(payload)
        assert not padding.strip(b"\0"), "nothing but zeros behind the packet"
        assert not padding or len(payload) == 46, "only short frames are padded"
        if kind == 0x64:
            packet = bytes(parse_lp_packet_v2(packet).fragment)
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
    assert {"ports", "worker"} <= set(threads(near))
    route(near, "/object", there)
    with published(far, "/object", content):
        assert same(fetch(near, "/object"), content)
        face = face_to(near, link.uri(1))
        assert (face["local_uri"], face["link_type"], face["mtu_bytes"]) == (link.local(0), "point-to-point", 1500)
        assert face["in_data"] > 300 and face["persistency"] == "permanent"
        refused = near.namehop("face", "create", link.uri(1), "--local", link.local(0), "--json")
        assert '"created": false' in refused.stdout, "the same face is found"

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
        wait_until(lambda: near.json("route", "list"), what="the route is back")
        assert same(fetch(near, "/object"), content)
    assert face_to(near, link.uri(1))["local_uri"] == link.local(0)


def test_multicast_faces_by_configuration(make_router, link, content):
    group = f"ether://[{GROUP}]"
    routes = f'[[face]]\nuri = "{group}"\nlocal = "{link.local(0)}"\n[[route]]\nprefix = "/object"\nnexthop = "{group}"\n'
    near = start(make_router, link, 0, routes)
    far = start(make_router, link, 1, f'[[port]]\nuri = "{link.local(1)}"\nmulticast = true\n')
    face = face_to(far, group)
    assert (face["local_uri"], face["link_type"], face["persistency"]) == (link.local(1), "multi-access", "permanent")
    # A port that takes long to open does not keep the router from starting.
    wait_until(lambda: "/object" in near.namehop("route", "list").stdout, what="the route over the port")
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

    # The other way round there is a face, but frames from elsewhere are nobody's.
    before = drops(near, "unknown-sender")
    sender = "02:00:00:00:00:99"
    send_frames(link, 1, [frame(link.address(0), sender, ETHERTYPE, interest("/x", nonce=os.urandom(4)))] * 3)
    wait_until(lambda: drops(near, "unknown-sender") == before + 3, what="three frames of nobody")


def frame(destination, source, ethertype, payload):
    address = lambda text: bytes.fromhex(text.replace(":", ""))
    return (address(destination) + address(source) + struct.pack("!H", ethertype) + payload).ljust(60, b"\0")


def send_frames(link, end, frames):
    """Sends raw frames from one end of the link."""
    program = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        f"s.bind(({link.devices[end]!r}, 0))\n"
        "for line in sys.stdin: s.send(bytes.fromhex(line))\n"
    )
    text = "".join(frame.hex() + "\n" for frame in frames)
    subprocess.run([*link.inside(end), "python3", "-c", program], input=text, text=True, check=True)


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
    # What is not NDN, or belongs to a VLAN, stays in the kernel: however much there is of it, it fills no ring.
    tagged = frame(here, peer, 0x8100, b"\0\5" + struct.pack("!H", ETHERTYPE) + packet)
    send_frames(link, 1, [frame(here, peer, 0x88B5, packet), tagged] * 2000)
    send_frames(link, 1, [frame(here, peer, ETHERTYPE, interest("/x", nonce=os.urandom(4)))])
    wait_until(lambda: face_to(near, "ether://[02:00:00:00:00:99]")["in_interests"] == 1, what="the face lives on")
    assert drops(near, "not-ndn-frame") == drops(near, "receive-ring-full") == 0


def test_frames_that_the_router_has_no_time_for_are_named_drops(make_router, link):
    near = start(make_router, link, 0)
    near.json("face", "create", "ether://[02:00:00:00:00:99]", "--local", link.local(0))
    packets = [frame(link.address(0), "02:00:00:00:00:99", ETHERTYPE, interest(f"/x/{n}", nonce=os.urandom(4))) for n in range(3000)]
    near.process.send_signal(signal.SIGSTOP)
    send_frames(link, 1, packets)
    near.process.send_signal(signal.SIGCONT)
    arrived = lambda: face_to(near, "ether://[02:00:00:00:00:99]")["in_interests"]
    wait_until(lambda: arrived() + drops(near, "receive-ring-full") == 3000, what="each frame arrived or was counted")
    assert arrived() >= 1000, "those that the ring holds"


class SlowNeighbour:
    """A second interface of the near end, shaped to one megabit a second, whose other end is at the far one."""

    def __init__(self, link):
        (left, self.far), self.address = link.namespaces, "02:00:00:00:00:77"
        ip("link", "add", "slow0", "netns", left, "type", "veth", "peer", "name", "slow1", "netns", self.far)
        ip("-n", left, "link", "set", "slow0", "up")
        ip("-n", self.far, "link", "set", "slow1", "address", self.address, "up")
        shape = ["qdisc", "add", "dev", "slow0", "root", "tbf", "rate", "1mbit", "burst", "5000", "limit", "20000"]
        subprocess.run([*link.inside(0), "tc", *shape], check=True, capture_output=True)

    def received(self):
        """NDN frames only: the kernel's own have other destinations."""
        command = ["ip", "-n", self.far, "-s", "-j", "link", "show", "slow1"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]["stats64"]["rx"]["packets"]


class Flood:
    """An application that sends 4,000 Interests a second, ten times what fits through the slow interface."""

    def __init__(self, router):
        self.connection, self.running, self.count = router.connect(), True, 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        begin = time.monotonic()
        while self.running:
            while self.running and self.count < 4000 * (time.monotonic() - begin):
                text = "".join(f"/slow/{'x' * 200}/{self.count}")
                self.connection.sendall(interest(text, nonce=os.urandom(4), lifetime=500))
                self.count += 1
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


@contextmanager
def serving(router, prefix):
    """Something that answers pings."""
    server = router.spawn("serve", prefix)
    try:
        wait_until(lambda: prefix in router.namehop("route", "list").stdout, what=f"{prefix} registered")
        yield
    finally:
        server.kill()
        server.wait(PATIENCE)


def seconds_to_fetch(router, name, file):
    """The best of three: the tests share the processors with others."""
    taken = []
    for _ in range(3):
        router.namehop("cs", "erase", name)
        before = time.monotonic()
        assert same(fetch(router, name), file)
        taken.append(time.monotonic() - before)
    return min(taken)


def ping(router, name):
    """Twenty pings must all be answered."""
    pings = router.json("ping", name, "-c", "20", "-i", "20ms", "-o", "20s")
    assert pings["received"] == 20, pings


def test_a_congested_port_keeps_nobody_else_waiting_and_no_frame_stays_behind(make_router, link, content):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    slow = SlowNeighbour(link)
    slow_uri = f"ether://[{slow.address}]"
    slow_face = near.json("face", "create", slow_uri, "--local", "dev://slow0", "--persistency", "permanent")["face_id"]
    for prefix, face in {"/object": there, "/there": there, "/slow": slow_face}.items():
        route(near, prefix, face)
    with published(far, "/object", content), serving(far, "/there"), serving(near, "/here"):
        unloaded = seconds_to_fetch(near, "/object", content)
        ping(near, "/there")
        with Flood(near) as flood:
            wait_until(lambda: drops(near, "send-queue-full") > 0, what="the slow port is congested")
            loaded = seconds_to_fetch(near, "/object", content)
            for name in ("/here", "/there"):
                ping(near, name)
            wait_until(lambda: flood.count > 4000, what="there is a flood")
        # At the rate of the slow port the object would take 24 s at least, and it has a part of that only.
        assert loaded < 3 * unloaded + 5, f"{loaded:.2f} s beside a flood, {unloaded:.2f} s without"
    # The queue of half the frames that may wait, and that of the kernel, at 275 bytes each and 125,000 bytes a second.
    sent = lambda: face_to(near, slow_uri)["out_interests"] - drops(near, "send-queue-full")
    wait_until(lambda: slow.received() >= sent(), what="everything that was accepted comes out")
    assert near.json("status")["drops"].get("link", {}).keys() <= {"send-queue-full", "receive-ring-full"}


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
            assert near.namehop("ping", "/object/nothing", "-c", "1", check=False).returncode != 0
            assert drops(near, "link-down") > 0
            link.set("up", ends=[0])
            wait_until(lambda: is_connected(near), what="the link is back")
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
    # The peers know each other by the addresses from before; new ones would need new faces.
    for end in (0, 1):
        link.set("address", old[end], ends=[end])
    link.set("mtu", "9000")
    with published(far, "/object", content):
        wait_until(lambda: face_to(near, f"ether://[{old[1]}]")["mtu_bytes"] == 8800, what="jumbo frames")
        wait_until(lambda: face_to(far, f"ether://[{old[0]}]")["mtu_bytes"] == 8800, what="jumbo frames")
        assert same(fetch(near, "/object"), content)


def test_the_router_sleeps_when_nothing_happens(make_router, link):
    near, far = start(make_router, link, 0), start(make_router, link, 1)
    connect(near, far, link)

    def share():
        """Part of a processor that the router takes within some seconds."""
        before, begin = processor_seconds(near), time.monotonic()
        time.sleep(5)
        return (processor_seconds(near) - before) / (time.monotonic() - begin)

    # The start may take its time.
    wait_until(lambda: share() < 0.03, what="the router takes nearly nothing of a processor")


def test_without_permission_the_command_says_what_is_missing(make_router, link):
    near = make_router(ports(0), name="near", start=False)
    near.folder.chmod(0o777)
    for folder in near.folder.parents:
        if folder != folder.parent and folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    near.prefix = [*link.inside(0), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    near.start()
    refused = near.namehop("face", "create", link.uri(1), "--local", link.local(0), check=False)
    assert refused.returncode != 0 and "CAP_NET_RAW" in refused.stderr, refused.stderr
    refused = near.namehop("face", "create", link.uri(1), "--local", "dev://nope0", check=False)
    assert refused.returncode != 0 and "nope0" in refused.stderr, refused.stderr
    socket_path = near.folder / "memif.sock"
    near.namehop("face", "create", f"memif://{socket_path}?id=0"), "memif needs no privileges"


def memif(folder, role="server", number=7):
    suffix = "&role=client" if role == "client" else ""
    return f"memif://{folder}/memif.sock?id={number}{suffix}"


@pytest.fixture
def memif_pair(make_router, tmp_path):
    """A server and a client, connected, with routes from the client to the server."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    server.namehop("face", "create", memif(tmp_path), "--persistency", "permanent")
    client.namehop("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")
    client.namehop("route", "add", "/object", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    return server, client


def test_an_object_through_memif(memif_pair, content):
    server, client = memif_pair
    with published(server, "/object", content):
        assert same(fetch(client, "/object"), content)
    assert client.json("face", "list")
    assert drops(client, "malformed-frame") == drops(server, "malformed-frame") == 0


def test_the_client_of_a_memif_restarts(memif_pair, content):
    server, client = memif_pair
    with published(server, "/object", content):
        for end in (client.stop, client.kill):
            end()
            wait_until(lambda: not is_connected(server), what="the server notices")
            client.log.unlink()
            client.start()
            wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
            wait_until(lambda: client.json("route", "list"), what="the route is back")
            assert same(fetch(client, "/object"), content)


def test_the_server_of_a_memif_restarts(memif_pair, content):
    server, client = memif_pair
    for end in (server.stop, server.kill):
        end()
        wait_until(lambda: not is_connected(client), what="the client notices")
        server.log.unlink()
        server.start()
        wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
        client.namehop("cs", "erase", "/object")
        with published(server, "/object", content):
            assert same(fetch(client, "/object"), content)


def test_a_memif_that_breaks_under_load(memif_pair, content):
    server, client = memif_pair
    for _ in range(3):
        with published(server, "/object", content):
            client.namehop("cs", "erase", "/object")
            fetching = client.spawn("cat", "/object")
            time.sleep(0.05)
            server.kill()
            fetching.kill()
            fetching.wait(PATIENCE)
        wait_until(lambda: not is_connected(client), what="the client notices")
        server.log.unlink()
        server.start()
        wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
    assert client.process.poll() is None


def test_ethernet_faces_through_memif(make_router, tmp_path, content):
    """A memif can carry Ethernet frames too, with any number of faces."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    group = f"ether://[{GROUP}]"
    server.namehop("face", "create", group, "--local", memif(tmp_path))
    client.namehop("face", "create", group, "--local", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    client.namehop("route", "add", "/object", group)
    with published(server, "/object", content):
        assert same(fetch(client, "/object"), content)
    refused = server.namehop("face", "create", memif(tmp_path), check=False)
    assert refused.returncode != 0 and "in use the other way" in refused.stderr, refused.stderr


def test_a_router_for_sockets_only_starts_no_dpdk(router):
    assert not {"ports", "worker", "eal-intr-thread"} & set(threads(router))
    with open(f"/proc/{router.process.pid}/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    assert resident < 40_000, f"{resident} kB"
    refused = router.namehop("face", "create", "ether://[02:00:00:00:00:01]", check=False)
    assert refused.returncode != 0 and "dev://" in refused.stderr, refused.stderr
    assert "ports" not in threads(router), "a refused face starts nothing"
