"""Hosts with several addresses, and addresses that come and go: a UDP response leaves from the address that the request was sent to."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from applications import published, same
from conftest import wait_until
from packets import interest
from port_links import Link, content, ip, needs_root, start  # noqa: F401

pytestmark = needs_root

# Addresses of the router under test, in the kernel's order of preference, and addresses of the client.
ASKED = {
    "udp4": ["192.0.2.1/24", "192.0.2.2/24", "198.51.100.1/24"],
    "udp6": ["2001:db8::1/64", "2001:db8::2/64", "2001:db8:1::1/64"],
}
ASKING = {"udp4": ["192.0.2.9/24", "198.51.100.9/24"], "udp6": ["2001:db8::9/64", "2001:db8:1::9/64"]}

# Sends packets to each address from one socket, all at once, and prints the source address of each response.
ASK = """
import json, socket, sys
targets, port, packet = json.loads(sys.argv[1])
family = socket.AF_INET6 if ":" in targets[0] else socket.AF_INET
asking = socket.socket(family, socket.SOCK_DGRAM)
asking.settimeout(2)
for target in targets:
    info = socket.getaddrinfo(target, port, family, socket.SOCK_DGRAM)[0][4]
    for _ in range(3):
        asking.sendto(bytes.fromhex(packet), info)
heard = []
try:
    while len(heard) < 3 * len(targets):
        heard.append(asking.recvfrom(9000)[1][0])
except TimeoutError:
    pass
print(json.dumps([asking.getsockname()[1], heard]))
"""


def address(text):
    return text.partition("/")[0]


def uri(scheme, host, port):
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def add(link, end, text):
    options = ["nodad"] if ":" in text else []
    ip("-n", link.namespaces[end], "address", "add", text, "dev", link.devices[end], *options)


def ask(link, targets, port, packet):
    question = json.dumps([targets, port, packet.hex()])
    command = [*link.inside(0), sys.executable, "-c", ASK, question]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@contextmanager
def cached(router):
    """Caches Data in the router, so that it answers each Interest for it with a single datagram."""
    content = router.folder / "small.bin"
    content.write_bytes(bytes(100))
    with published(router, "/asked/object", content):
        router.namehop("cat", "/asked/object", text=False)
        yield interest("/asked/object", can_be_prefix=True)


def udp_faces(router):
    return [face for face in router.json("face", "list") if face["remote_uri"].startswith("udp")]


@pytest.fixture
def hosts():
    with Link(f"sa{os.getpid()}") as link:
        for scheme in ASKED:
            for text in ASKING[scheme]:
                add(link, 0, text)
            for text in ASKED[scheme]:
                add(link, 1, text)
        yield link


def wildcards(router):
    return f'[faces.udp]\nlisten = ["0.0.0.0:{router.udp}", "[::]:{router.udp}"]\n'


@pytest.fixture
def asked(make_router, hosts):
    router = make_router(name="asked", start=False)
    router.extra = wildcards(router)
    router.prefix = hosts.inside(1)
    return router.start()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("scheme", ASKED)
def test_udp_answers_leave_from_the_address_that_was_asked(hosts, asked, scheme, workers):
    targets = [address(text) for text in ASKED[scheme]]
    with cached(asked) as question:
        port, heard = ask(hosts, targets, asked.udp, question)
        assert sorted(heard) == sorted(3 * targets)
        ends = {(face["remote_uri"].rpartition(":")[2], face["local_uri"]) for face in udp_faces(asked)}
        assert ends == {(str(port), uri(scheme, target, asked.udp)) for target in targets}


def test_a_link_local_address_is_answered_from_too(hosts, asked):
    shown = ["ip", "-n", hosts.namespaces[1], "-json", "-6", "address", "show", "dev", hosts.devices[1], "scope", "link"]

    def settled():
        listed = json.loads(subprocess.run(shown, check=True, capture_output=True, text=True).stdout)
        found = [one for interface in listed for one in interface.get("addr_info", []) if "local" in one]
        return [one["local"] for one in found if not one.get("tentative")]

    (own,) = wait_until(settled, what="a link-local address")
    ip("-n", hosts.namespaces[1], "address", "add", "fe80::7/64", "dev", hosts.devices[1], "nodad")
    targets = [f"{one}%{hosts.devices[0]}" for one in ["fe80::7", own]]
    with cached(asked) as question:
        _, heard = ask(hosts, targets, asked.udp, question)
    assert sorted(one.partition("%")[0] for one in heard) == sorted(3 * ["fe80::7", own])
    assert {face["local_uri"] for face in udp_faces(asked)} == {f"udp6://[{one}%{hosts.devices[1]}]:{asked.udp}" for one in ["fe80::7", own]}


@pytest.mark.parametrize("scheme", ASKED)
def test_two_routers_exchange_data_over_each_address(make_router, hosts, asked, content, scheme):  # noqa: F811
    asking = make_router(name="asking", start=False)
    asking.extra = wildcards(asking)
    asking.prefix = hosts.inside(0)
    asking.start()
    with published(asked, "/asked/object", content):
        for text in ASKED[scheme]:
            asking.namehop("cs", "erase", "/")
            peer = uri(scheme, address(text), asked.udp)
            asking.namehop("route", "add", "/asked", peer)
            assert same(asking.namehop("cat", "/asked/object", text=False).stdout, content)
            asking.namehop("route", "remove", "/asked", peer)
    assert len(udp_faces(asking)) == len(udp_faces(asked)) == len(ASKED[scheme])


@pytest.mark.parametrize("scheme", ASKED)
def test_faces_follow_the_addresses_of_the_host(hosts, asked, scheme):
    first, second, _ = ASKED[scheme]
    remote = uri(scheme, address(ASKING[scheme][0]), 6363)
    made = asked.json("face", "create", remote)["face_id"]
    port, _ = ask(hosts, [address(first), address(second)], asked.udp, interest("/nothing"))
    on_demand = uri(scheme, address(ASKING[scheme][0]), port)

    def ends():
        return {(face["face_id"] == made, face["local_uri"], face["is_up"]) for face in udp_faces(asked)}

    def local(text):
        return uri(scheme, address(text), asked.udp)

    (preferred,) = [uri for is_made, uri, _ in ends() if is_made]
    (gone,) = [text for text in (first, second) if local(text) == preferred]
    (other,) = {first, second} - {gone}
    assert ends() == {(True, local(gone), True), (False, local(gone), True), (False, local(other), True)}
    assert {face["remote_uri"] for face in udp_faces(asked)} == {remote, on_demand}
    if ":" not in gone:
        # By default the kernel removes the secondary addresses of a network together with the primary one.
        setting = f"net.ipv4.conf.{hosts.devices[1]}.promote_secondaries=1"
        subprocess.run([*hosts.inside(1), "sysctl", "-qw", setting], check=True)
    ip("-n", hosts.namespaces[1], "address", "delete", gone, "dev", hosts.devices[1])
    wait_until(lambda: ends() == {(True, local(other), True), (False, local(other), True)}, what=f"faces without {gone}: {ends()}")
    ip("-n", hosts.namespaces[1], "address", "delete", other, "dev", hosts.devices[1])
    wait_until(lambda: ends() == {(True, "null://", False)}, what=f"a face that is down: {ends()}")
    add(hosts, 1, gone)
    wait_until(lambda: ends() == {(True, local(gone), True)}, what=f"a face that is up again: {ends()}")


GROUPS = {"udp4": "224.0.23.170", "udp6": "ff02::1234"}

# Joins the group on an interface and prints the source address of a datagram.
LISTEN = """
import socket, struct, sys
group, device = sys.argv[1:]
family = socket.AF_INET6 if ":" in group else socket.AF_INET
index = socket.if_nametoindex(device)
member = socket.socket(family, socket.SOCK_DGRAM)
member.settimeout(5)
member.bind(("", 56363))
if family == socket.AF_INET6:
    member.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(family, group) + struct.pack("@I", index))
else:
    member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + struct.pack("@4si", bytes(4), index))
print("joined", flush=True)
print(member.recvfrom(9000)[1][0])
"""


def source(link, router, scheme):
    """Returns the source address of an Interest that the router sends to the group, or nothing if none arrives."""
    command = [*link.inside(0), sys.executable, "-c", LISTEN, GROUPS[scheme], link.devices[0]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        assert member.stdout.readline() == "joined\n"
        router.namehop("ping", "/group", "--count", "1", "--timeout", "100ms", check=False)
        return member.communicate(timeout=60)[0].strip().partition("%")[0]


@pytest.mark.parametrize("scheme", ASKED)
def test_multicast_datagrams_have_an_address_of_their_interface(make_router, hosts, scheme):
    # An interface that the kernel would choose by its routes.
    inside = ["-n", hosts.namespaces[1]]
    ip(*inside, "link", "add", "other0", "type", "veth", "peer", "name", "other1")
    for device in ["other0", "other1"]:
        ip(*inside, "link", "set", device, "up")
    for text, group in [("203.0.113.1/24", "224.0.0.0/4"), ("2001:db8:2::1/64", "ff02::/16")]:
        ip(*inside, "address", "add", text, "dev", "other0")
        ip(*inside, "route", "add", "multicast", group, "dev", "other0", *(["table", "local"] if ":" in group else []))
    router = make_router(f'[faces.multicast]\ninterfaces = ["{hosts.devices[1]}"]\n', name="asked", start=False)
    router.prefix = hosts.inside(1)
    router.start()
    (face,) = [face for face in router.json("face", "list") if GROUPS[scheme] in face["remote_uri"]]
    assert face["local_uri"] == f"{scheme}+dev://{hosts.devices[1]}:56363"
    router.namehop("route", "add", "/group", face["face_id"])
    if scheme == "udp6":
        found = source(hosts, router, scheme)
        assert found.startswith("fe80::") or found in map(address, ASKED[scheme])
        return
    first, *others = (address(text) for text in ASKED[scheme])
    assert source(hosts, router, scheme) == first
    setting = f"net.ipv4.conf.{hosts.devices[1]}.promote_secondaries=1"
    subprocess.run([*hosts.inside(1), "sysctl", "-qw", setting], check=True)
    ip(*inside, "address", "delete", ASKED[scheme][0], "dev", hosts.devices[1])
    wait_until(lambda: source(hosts, router, scheme) in others, what="datagrams with another address of the interface")


@pytest.mark.parametrize("scheme", ASKED)
def test_a_port_answers_from_the_address_that_was_asked(make_router, scheme):
    with Link(f"sp{os.getpid()}") as link:
        for text in ASKING[scheme]:
            add(link, 0, text)
        addresses = ", ".join(f'"{text}"' for text in ASKED[scheme])
        router = start(make_router, link, 1, f'[[port]]\nuri = "{link.local(1)}"\naddresses = [{addresses}]\non_demand = true\n')
        targets = [address(text) for text in ASKED[scheme]]
        with cached(router) as question:
            _, heard = ask(link, targets, 6363, question)
        # Few frames are queued while the next hop is being resolved, so some responses may be missing.
        assert set(heard) == set(targets)
