"""UDP and VXLAN on ports with their own IP addresses: through a kernel router, to kernel sockets, over VXLAN, in VLANs, and on memif."""

import contextlib
import os
import subprocess
import sys

import pytest
from applications import published, same, wait_for_route
from conftest import wait_until
from packets import interest
from port_links import Link, drops, fetch, ip, is_connected, link, narrow_silently, needs_root, ports, route, wait_for_links

pytestmark = needs_root

NETWORKS = {
    "udp4": (["192.0.2.1/24", "198.51.100.1/24"], ["192.0.2.254", "198.51.100.254"], 24),
    "udp6": (["2001:db8:a::1/64", "2001:db8:b::1/64"], ["2001:db8:a::ff", "2001:db8:b::ff"], 64),
}


def bare(address):
    return address.split("/")[0]


def uri(scheme, address):
    host = bare(address)
    return f"{scheme}://[{host}]:6363" if ":" in host else f"{scheme}://{host}:6363"


def port(link, end, addresses, *lines):
    listed = ", ".join(f'"{address}"' for address in addresses)
    return "\n".join([f'[[port]]\nuri = "{link.local(end)}"\naddresses = [{listed}]', *lines, ""])


def start(make_router, link, end, *lines):
    """Starts a router at an end of the link where the kernel has no addresses."""
    router = make_router(ports(end, *lines), name="near" if end == 0 else "far", start=False)
    router.prefix = link.inside(end)
    return router.start()


def create(router, remote, local):
    return router.json("face", "create", remote, "--local", local, "--persistency", "permanent")


def file_of(folder, size):
    file = folder / "object.bin"
    file.write_bytes(os.urandom(size))
    return file


class RoutedLink(Link):
    """Two network namespaces joined by a kernel router, which has an interface to each."""

    def __enter__(self):
        self.middle = f"{self.name}r"
        ip("netns", "add", self.middle)
        return super().__enter__()

    def __exit__(self, *failure):
        super().__exit__(*failure)
        subprocess.run(["ip", "netns", "delete", self.middle], check=False, capture_output=True)

    def make(self):
        for end, (namespace, device) in enumerate(zip(self.namespaces, self.devices)):
            ip("link", "add", device, "netns", namespace, "type", "veth", "peer", "name", f"r{end}", "netns", self.middle)
            # Prevents the kernel at this end from assigning itself an address.
            ip("-n", namespace, "link", "set", device, "addrgenmode", "none")
            ip("-n", self.middle, "link", "set", f"r{end}", "up")
            for _, gateways, bits in NETWORKS.values():
                extra = ["nodad"] if ":" in gateways[end] else []
                ip("-n", self.middle, "address", "add", f"{gateways[end]}/{bits}", "dev", f"r{end}", *extra)
        for setting in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]:
            subprocess.run(["ip", "netns", "exec", self.middle, "sysctl", "-qw", f"{setting}=1"], check=True)
        self.set("up")


@pytest.mark.parametrize("scheme", NETWORKS)
def test_packets_travel_over_a_router_of_the_kernel(make_router, tmp_path, scheme):
    addresses, gateways, _ = NETWORKS[scheme]
    with RoutedLink(f"lk{os.getpid()}") as link:
        ends = [
            start(make_router, link, end, port(link, end, [addresses[end]], f'gateways = ["{gateways[end]}"]'))
            for end in (0, 1)
        ]
        near, far = ends
        faces = [create(router, uri(scheme, addresses[1 - end]), link.local(end)) for end, router in enumerate(ends)]
        assert faces[0]["local_uri"] == f"{link.local(0)}?ip={bare(addresses[0])}&port=6363"
        route(near, "/object", uri(scheme, addresses[1]))
        wait_for_links(near, far)
        # Data of 8,000 bytes takes six NDNLPv2 fragments and no IP fragments.
        file = file_of(tmp_path, 400_000)
        with published(far, "/object", file, "--segment-size", "8000"):
            assert same(fetch(near, "/object"), file)
        listed = {face["remote_uri"]: face for face in near.json("face", "list")}
        face = listed[uri(scheme, addresses[1])]
        assert face["mtu_bytes"] == (1472 if scheme == "udp4" else 1452) and face["in_data"] >= 50
        for router in ends:
            assert not {"bad-checksum", "ip-fragment", "neighbour-conflict", "next-hop-unresolved"} & set(
                router.json("status")["drops"].get("link", {})
            )
        # After a restart the face and the route are restored, and the next hop is resolved again.
        near.stop()
        near.start()
        wait_for_route(near, "/object")
        wait_for_links(near)
        with published(far, "/object", file, "--segment-size", "8000"):
            assert same(fetch(near, "/object"), file)


@pytest.mark.parametrize("scheme", [*NETWORKS, "vxlan4"])
def test_a_port_finds_the_mtu_of_a_path_that_reports_nothing(make_router, tmp_path, scheme):
    addresses, gateways, _ = NETWORKS["udp6" if scheme == "udp6" else "udp4"]
    with RoutedLink(f"lk{os.getpid()}") as link:
        ends = [
            start(make_router, link, end, port(link, end, [addresses[end]], f'gateways = ["{gateways[end]}"]'))
            for end in (0, 1)
        ]
        near, far = ends
        remotes = [f"vxlan4://{bare(address)}?vni=7" if scheme == "vxlan4" else uri(scheme, address) for address in addresses]
        faces = [create(router, remotes[1 - end], link.local(end))["face_id"] for end, router in enumerate(ends)]
        route(near, "/object", faces[0])
        wait_for_links(near, far)

        def mtu():
            return far.json("face", "show", faces[1])["mtu_bytes"]

        narrow_silently(link.middle, "r0", 1300)
        file = file_of(tmp_path, 400_000)
        with published(far, "/object", file, "--segment-size", "8000"):
            assert same(fetch(near, "/object"), file)
        wait_until(lambda: mtu() == 1300 - {"udp4": 28, "udp6": 48, "vxlan4": 50}[scheme], what="the largest size that passes")


KERNEL_PEER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
peer = socket.socket(family, socket.SOCK_DGRAM)
peer.bind((sys.argv[2], 6363))
peer.settimeout(20)
peer.sendto(bytes.fromhex(sys.argv[3]), (sys.argv[1], 6363))
answer, sender = peer.recvfrom(65536)
print(answer.hex(), sender[0], sender[1])
"""


@pytest.mark.parametrize("addresses", [("192.0.2.1/24", "192.0.2.2/24"), ("2001:db8::1/64", "2001:db8::2/64")])
def test_sockets_of_the_kernel_find_the_router(make_router, link, tmp_path, addresses):
    own, other = addresses
    near = start(make_router, link, 0, port(link, 0, [own], "on_demand = true"))
    ip("-n", link.namespaces[1], "address", "add", other, "dev", link.devices[1], *(["nodad"] if ":" in own else []))
    wait_until(lambda: "is_up=true" in near.log.read_text(), what="the link")
    file = file_of(tmp_path, 3000)
    with published(near, "/object", file, "--segment-size", "1000"):
        packet = interest("/object", nonce=os.urandom(4), can_be_prefix=True)
        command = [*link.inside(1), sys.executable, "-c", KERNEL_PEER, bare(own), bare(other), packet.hex()]
        answer, host, sender_port = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=60
        ).stdout.split()
    assert (host, sender_port) == (bare(own), "6363")
    assert b"object" in bytes.fromhex(answer), "Data with the name"
    scheme = "udp6" if ":" in own else "udp4"
    faces = {face["remote_uri"]: face for face in near.json("face", "list")}
    assert faces[uri(scheme, other)]["persistency"] == "on-demand"
    assert near.json("status")["drops"].get("link", {}).get("bad-checksum", 0) == 0


ECHO = """
import os, socket, struct, sys
v6 = ":" in sys.argv[1]
raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) if v6 else socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
raw.settimeout(20)
message = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, 0x1234, 1) + os.urandom(1000)
total = sum(struct.unpack("!%dH" % (len(message) // 2), message))
total = (total >> 16) + (total & 0xFFFF)
total += total >> 16
if not v6:
    message = message[:2] + struct.pack("!H", ~total & 0xFFFF) + message[4:]
raw.sendto(message, (sys.argv[1], 0))
while True:
    answer = raw.recv(65536)
    body = answer if v6 else answer[20:]
    if body[0] == (129 if v6 else 0):
        assert body[4:] == message[4:]
        print("answered")
        break
"""


def test_the_router_answers_echo_requests(make_router, link):
    start(make_router, link, 0, port(link, 0, ["192.0.2.1/24", "2001:db8::1/64"]))
    for address, other in [("192.0.2.1", "192.0.2.2/24"), ("2001:db8::1", "2001:db8::2/64")]:
        ip("-n", link.namespaces[1], "address", "add", other, "dev", link.devices[1], *(["nodad"] if ":" in other else []))
        command = [*link.inside(1), sys.executable, "-c", ECHO, address]
        assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout == "answered\n"


def test_ethernet_udp_and_vxlan_share_an_interface(make_router, link, tmp_path):
    addresses = ["192.0.2.1/24", "192.0.2.2/24"]
    near, far = [start(make_router, link, end, port(link, end, [addresses[end]])) for end in (0, 1)]
    for end, router in enumerate([near, far]):
        other = bare(addresses[1 - end])
        create(router, f"udp4://{other}:6363", f"{link.local(end)}?source_port=name")
        create(router, f"vxlan4://{other}?vni=42", link.local(end))
        create(router, f"vxlan4://{other}?vni=43&inner={link.address(1 - end)}", link.local(end))
        create(router, link.uri(1 - end), link.local(end))
    faces = {face["remote_uri"]: face for face in near.json("face", "list")}
    kinds = ["udp4://192.0.2.2:6363", "vxlan4://192.0.2.2?vni=42", f"vxlan4://192.0.2.2?vni=43&inner={link.address(1)}", link.uri(1)]
    assert [faces[kind]["mtu_bytes"] for kind in kinds] == [1472, 1450, 1450, 1500]
    file = file_of(tmp_path, 100_000)
    for number, kind in enumerate(kinds):
        prefix = f"/object/{number}"
        route(near, prefix, str(faces[kind]["face_id"]))
        with published(far, prefix, file, "--segment-size", "4000"):
            assert same(fetch(near, prefix), file)
        after = {face["remote_uri"]: face for face in near.json("face", "list")}
        used = [other for other in kinds if after[other]["in_data"] > 20]
        assert used == kinds[: number + 1], "nothing goes another way"
    for router in (near, far):
        dropped = router.json("status")["drops"].get("link", {})
        assert not {"unknown-sender", "bad-checksum", "malformed-frame", "neighbour-conflict"} & set(dropped), dropped
    # A second face that would receive the same datagrams.
    result = near.namehop(
        "face", "create", "udp4://192.0.2.2:7000", "--local", f"{link.local(0)}?source_port=name", check=False
    )
    assert result.returncode != 0 and "already receives all packets" in result.stderr


def test_a_vxlan_interface_of_the_kernel_is_the_other_end(make_router, link, tmp_path):
    near = start(make_router, link, 0, port(link, 0, ["192.0.2.1/24"]))
    ip("-n", link.namespaces[1], "address", "add", "192.0.2.2/24", "dev", link.devices[1])
    ip(
        "-n", link.namespaces[1], "link", "add", "vxlan42", "type", "vxlan", "id", 42, "remote", "192.0.2.1", "dstport", 4789,
        "dev", link.devices[1],
    )
    ip("-n", link.namespaces[1], "link", "set", "vxlan42", "up")
    far = start(make_router, link, 1)
    show = ["ip", "-n", link.namespaces[1], "-brief", "link", "show", "vxlan42"]
    inner = subprocess.run(show, check=True, capture_output=True, text=True).stdout.split()[2]
    face = create(near, f"vxlan4://192.0.2.2?vni=42&inner={inner}", link.local(0))
    create(far, link.uri(0), "dev://vxlan42")
    route(near, "/object", str(face["face_id"]))
    file = file_of(tmp_path, 100_000)
    with published(far, "/object", file, "--segment-size", "4000"):
        assert same(fetch(near, "/object"), file)


def test_a_silent_next_hop_is_named_and_what_cannot_be_is_refused(make_router, link):
    near = start(make_router, link, 0, port(link, 0, ["192.0.2.1/24"]))
    create(near, "udp4://192.0.2.9:6363", link.local(0))
    route(near, "/silent", "udp4://192.0.2.9:6363")
    near.namehop("ping", "/silent", "--count", "8", "--interval", "500ms", check=False)
    wait_until(lambda: drops(near, "next-hop-unresolved") > 0, what="packets to nobody")
    for remote, local, remedy in [
        ("udp4://203.0.113.1:6363", link.local(0), "gateways"),
        ("udp6://[2001:db8::1]:6363", link.local(0), "addresses"),
        ("udp4://192.0.2.7:6363", f"{link.local(0)}?ip=192.0.2.5", "addresses"),
        ("vxlan4://192.0.2.7?vni=1", f"{link.local(0)}?port=7", "4789"),
        ("vxlan4://192.0.2.7?vni=1", None, "dev://"),
    ]:
        result = near.namehop("face", "create", remote, *(["--local", local] if local else []), check=False)
        assert result.returncode != 0 and remedy in result.stderr, result.stderr


# Carries frames between a TAP interface and a VLAN of another interface, like the kernel's VLAN module, which not every kernel has.
VLAN_INTERFACE = """
import fcntl, os, select, socket, struct, sys
device, name, vlan = sys.argv[1], sys.argv[2], int(sys.argv[3])
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
link.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
link.bind((device, 3))
print("there", flush=True)
while True:
    for ready in select.select([tap, link], [], [])[0]:
        if ready == tap:
            frame = os.read(tap, 65536)
            link.send(frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:])
            continue
        frame, ancillary, _, _ = link.recvmsg(65536, 256)
        status, _, _, _, _, tag, _ = struct.unpack("=IIIHHHH", ancillary[0][2])
        if frame[12:14] == b"\\x81\\x00":
            tag, frame = int.from_bytes(frame[14:16], "big"), frame[:12] + frame[16:]
        elif not status & 16:  # TP_STATUS_VLAN_VALID
            continue
        if tag & 0xFFF == vlan:
            os.write(tap, frame)
"""


@contextlib.contextmanager
def kernel_vlans(link, end, vlans, addresses):
    """Makes kernel interfaces in VLANs of a link. The first of them gets these addresses."""
    device, running = link.devices[end], []
    try:
        for vlan in vlans:
            name = f"{device}.{vlan}"
            command = [*link.inside(end), sys.executable, "-c", VLAN_INTERFACE, device, name, str(vlan)]
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert running[-1].stdout.readline() == "there\n"
            ip("-n", link.namespaces[end], "link", "set", name, "up")
            for address in addresses if vlan == vlans[0] else []:
                extra = ["nodad"] if ":" in address else []
                ip("-n", link.namespaces[end], "address", "add", address, "dev", name, *extra)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def segment(uri, addresses, *lines):
    """Returns the configuration of a port, or of a VLAN on it."""
    listed = ", ".join(f'"{address}"' for address in addresses)
    return "\n".join([f'[[port]]\nuri = "{uri}"\naddresses = [{listed}]', *lines, ""])


@pytest.mark.parametrize("driver", ["dev", "xdp"])
def test_vlans_with_the_same_addresses_are_different_networks(make_router, tmp_path, driver):
    """The kernel at the other end has an interface in the VLAN, answers ARP and neighbour discovery, and resolves the router's address."""
    # One queue at each end, because AF_XDP serves only one queue here.
    with Link(f"nv{os.getpid()}", "numrxqueues", 1, "numtxqueues", 1) as link:
        try_vlans(make_router, link, tmp_path, driver)


def try_vlans(make_router, link, tmp_path, driver):
    own, other = ["192.0.2.1/24", "2001:db8::1/64"], ["192.0.2.2/24", "2001:db8::2/64"]
    port = f"{driver}://{link.devices[0]}"
    near = start(make_router, link, 0, segment(f"{port}?vlan=7", own, "on_demand = true"), segment(port, own))
    with kernel_vlans(link, 1, [7], other):
        exchange_with_kernel(make_router, link, near, port, own, other, tmp_path)


def exchange_with_kernel(make_router, link, near, port, own, other, tmp_path):
    wait_until(lambda: "is_up=true" in near.log.read_text(), what="the link")
    file = file_of(tmp_path, 3000)
    with published(near, "/object", file, "--segment-size", "1000"):
        for scheme, address, peer in zip(["udp4", "udp6"], own, other):
            packet = interest("/object", nonce=os.urandom(4), can_be_prefix=True)
            command = [*link.inside(1), sys.executable, "-c", KERNEL_PEER.replace("settimeout(20)", "settimeout(5)")]
            command += [bare(address), bare(peer), packet.hex()]
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert answer.returncode == 0 and b"object" in bytes.fromhex(answer.stdout.split()[0]), answer.stderr
            made = next(face for face in near.json("face", "list") if face["remote_uri"] == uri(scheme, peer))
            assert made["local_uri"] == f"{port}?vlan=7&ip={bare(address)}&port=6363" and made["mtu_bytes"] in (1472, 1452)
    assert set(near.json("status")["drops"].get("link", {})) <= {"unknown-sender", "foreign-frame"}

    # The reverse direction: the router resolves the kernel's MAC address in the face's VLAN.
    far = make_router('[faces.udp]\nlisten = ["0.0.0.0:6363", "[::]:6363"]\n', name="kernel", start=False)
    far.prefix = link.inside(1)
    far.start()
    with published(far, "/far", file, "--segment-size", "1000"):
        for scheme, peer in zip(["udp4", "udp6"], other):
            near.namehop("cs", "erase", "/far")
            local = f"{port}?vlan=7"
            created = near.namehop("face", "create", uri(scheme, peer), "--local", local, check=False)
            route(near, "/far", uri(scheme, peer))
            assert same(fetch(near, "/far"), file), created.stdout + created.stderr
            near.namehop("route", "remove", "/far", uri(scheme, peer))
    # No host answers in the untagged network.
    silent = create(near, "udp4://192.0.2.9:6363", port)
    route(near, "/silent", str(silent["face_id"]))
    near.namehop("ping", "/silent", "--count", "8", "--interval", "500ms", check=False)
    wait_until(lambda: drops(near, "next-hop-unresolved") > 0, what="packets to nobody")


def test_udp_vxlan_and_vlans_on_memif(make_router, tmp_path):
    socket = f"memif://{tmp_path}/memif.sock?id=0"
    roles = [socket, f"{socket}&role=client"]
    # Addresses that do not overlap with networks of the test host.
    addresses = [("198.18.7.1/24", "2001:db8::1/64"), ("198.18.7.2/24", "2001:db8::2/64")]
    ends = []
    for end, (local, own) in enumerate(zip(roles, addresses)):
        lines = segment(local, own), segment(f"{local}&vlan=7", own)
        ends.append(make_router(ports(end, *lines), name="near" if end == 0 else "far"))
    near, far = ends
    wait_until(lambda: is_connected(near) and is_connected(far), what="the memif connects")
    file = file_of(tmp_path, 100_000)
    remotes = [(uri("udp4", addresses[1][0]), ""), (uri("udp4", addresses[1][0]), "&vlan=7"), ("vxlan6://[2001:db8::2]?vni=5", "&vlan=7")]
    for number, (remote, vlan) in enumerate(remotes):
        back = remote.replace("198.18.7.2", "198.18.7.1").replace("db8::2", "db8::1")
        face = create(near, remote, roles[0] + vlan)
        create(far, back, roles[1] + vlan)
        prefix = f"/object/{number}"
        route(near, prefix, str(face["face_id"]))
        with published(far, prefix, file, "--segment-size", "4000"):
            assert same(fetch(near, prefix), file)
        faces = {face["local_uri"]: face for face in near.json("face", "list")}
        expected = f"{roles[0]}{vlan}&ip=" + ("2001:db8::1" if "vxlan" in remote else "198.18.7.1&port=6363")
        assert faces[expected]["in_data"] >= 25, faces
    for router in ends:
        assert not set(router.json("status")["drops"].get("link", {})) - {"next-hop-unresolved", "link-down"}
    # Faces and routes are restored after a restart.
    near.stop()
    near.start()
    wait_for_route(near, "/object/1")
    wait_for_links(near)
    with published(far, "/object/1", file, "--segment-size", "4000"):
        near.namehop("cs", "erase", "/object/1")
        assert same(fetch(near, "/object/1"), file)
