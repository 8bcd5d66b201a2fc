"""UDP and VXLAN on ports with Internet addresses of their own: over a router of the kernel, to sockets of the kernel, and in VXLAN."""

import os
import subprocess
import sys

import pytest
from applications import published, same, wait_for_route
from conftest import wait_until
from packets import interest
from port_links import Link, drops, fetch, ip, link, needs_root, ports, route

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
    """A router whose end of the link has no addresses of the kernel."""
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
    """Two network namespaces with a router of the kernel between them, which has an interface to each."""

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
            # The kernel at this end has no part in what the router does.
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
        # Data of 8,000 bytes: six fragments each, and none by the kernel.
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
        # After a restart face and route are there again, and the next hop is asked for anew.
        near.stop()
        near.start()
        wait_for_route(near, "/object")
        with published(far, "/object", file, "--segment-size", "8000"):
            assert same(fetch(near, "/object"), file)


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
    # A second face that would get the same datagrams.
    result = near.namehop(
        "face", "create", "udp4://192.0.2.2:7000", "--local", f"{link.local(0)}?source_port=name", check=False
    )
    assert result.returncode != 0 and "already takes" in result.stderr


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
