"""Large Data over UDP without IP fragments: faces use the MTU of their route, and follow its changes."""

import os
import subprocess

import pytest
from applications import published, same
from conftest import wait_until
from port_links import ip, narrow_silently, needs_root

pytestmark = needs_root

HOSTS = {"udp4": ("192.0.2.1", "198.51.100.1"), "udp6": ("2001:db8:1::1", "2001:db8:2::1")}
HEADERS = {"udp4": 28, "udp6": 48}


def inside(namespace, *command, **options):
    return subprocess.run(["ip", "netns", "exec", namespace, *command], check=True, capture_output=True, **options)


class Path:
    """Two hosts joined by a kernel router."""

    def __init__(self, name):
        self.ends = [f"{name}a", f"{name}b"]
        self.middle = f"{name}m"

    def __enter__(self):
        for namespace in (*self.ends, self.middle):
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        for number, end in enumerate(self.ends):
            inner = f"toward-{end[-1]}"
            ip("link", "add", "veth0", "netns", end, "type", "veth", "peer", "name", inner, "netns", self.middle)
            for namespace, device in ((end, "veth0"), (self.middle, inner)):
                ip("-n", namespace, "link", "set", device, "up")
            for scheme in HOSTS:
                own = HOSTS[scheme][number]
                gateway = own[:-1] + ("ff" if scheme == "udp6" else "254")
                bits, options = (64, ["nodad"]) if scheme == "udp6" else (24, [])
                ip("-n", end, "address", "add", f"{own}/{bits}", "dev", "veth0", *options)
                ip("-n", self.middle, "address", "add", f"{gateway}/{bits}", "dev", inner, *options)
                ip("-n", end, "route", "add", "default", "via", gateway)
        inside(self.middle, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        return self

    def __exit__(self, *_):
        for namespace in (*self.ends, self.middle):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def fragments(self):
        """Returns the number of IP fragments that the hosts have made so far."""
        made = 0
        for end in self.ends:
            counters = inside(end, "nstat", "-asz", "IpFragCreates", "Ip6FragCreates", text=True).stdout
            made += sum(int(line.split()[1]) for line in counters.splitlines() if "FragCreates" in line)
        return made

    def narrow(self, mtu_bytes):
        """Lowers the MTU of the middle toward the first host. The middle reports larger packets to their sender."""
        ip("-n", self.middle, "link", "set", "toward-a", "mtu", mtu_bytes)

    def narrow_silently(self, mtu_bytes):
        """Does the same, and the middle reports nothing."""
        narrow_silently(self.middle, "toward-a", mtu_bytes)


@pytest.fixture
def path():
    with Path(f"sm{os.getpid()}") as path:
        yield path


@pytest.fixture
def content(tmp_path):
    file = tmp_path / "object.bin"
    file.write_bytes(os.urandom(400_000))
    return file


@pytest.fixture
def routers(make_router, path):
    routers = [make_router(name=name, start=False) for name in ("near", "far")]
    for router, namespace in zip(routers, path.ends):
        router.extra = f'[faces.udp]\nlisten = ["0.0.0.0:{router.udp}", "[::]:{router.udp}"]\n'
        router.prefix = ["ip", "netns", "exec", namespace]
        router.start()
    return routers


def uri(scheme, address, port):
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


def udp_mtu(router, scheme):
    (mtu,) = {face["mtu_bytes"] for face in router.json("face", "list") if face["remote_uri"].startswith(scheme)}
    return mtu


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("scheme", HOSTS)
def test_large_data_needs_no_ip_fragments(path, routers, content, scheme, workers):
    near, far = routers
    near.namehop("route", "add", "/far", uri(scheme, HOSTS[scheme][1], far.udp))
    before = path.fragments()
    with published(far, "/far/object", content):
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    assert path.fragments() == before
    assert udp_mtu(near, scheme) == udp_mtu(far, scheme) == 1500 - HEADERS[scheme]


@pytest.mark.parametrize("scheme", HOSTS)
def test_a_face_learns_that_its_path_became_narrower(path, routers, content, scheme):
    near, far = routers
    near.namehop("route", "add", "/far", uri(scheme, HOSTS[scheme][1], far.udp))
    with published(far, "/far/object", content):
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
        near.namehop("cs", "erase", "/")
        path.narrow(1300)
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    assert udp_mtu(far, scheme) == 1300 - HEADERS[scheme]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("scheme", HOSTS)
def test_large_data_passes_a_narrow_path_that_reports_nothing(path, routers, content, scheme, workers):
    near, far = routers
    path.narrow_silently(1300)
    near.namehop("route", "add", "/far", uri(scheme, HOSTS[scheme][1], far.udp))
    with published(far, "/far/object", content):
        assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    wait_until(lambda: udp_mtu(far, scheme) == 1300 - HEADERS[scheme], what="the largest size that passes")
    assert udp_mtu(near, scheme) == 1500 - HEADERS[scheme], "Interests were small"


@pytest.mark.parametrize("scheme", HOSTS)
def test_a_path_becomes_narrower_and_reports_nothing(path, routers, content, scheme):
    near, far = routers
    near.namehop("route", "add", "/far", uri(scheme, HOSTS[scheme][1], far.udp))

    def arrives():
        near.namehop("cs", "erase", "/")
        fetched = near.namehop("cat", "/far/object", text=False, check=False)
        return fetched.returncode == 0 and same(fetched.stdout, content)

    with published(far, "/far/object", content):
        assert arrives() and udp_mtu(far, scheme) == 1500 - HEADERS[scheme]
        path.narrow_silently(1300)
        wait_until(arrives, what="large Data arrives again")
    wait_until(lambda: udp_mtu(far, scheme) == 1300 - HEADERS[scheme], what="the largest size that passes")


def test_a_face_follows_the_mtu_of_its_interface(path, routers):
    near, far = routers
    near.namehop("face", "create", uri("udp4", HOSTS["udp4"][1], far.udp))
    assert udp_mtu(near, "udp4") == 1472
    ip("-n", path.ends[0], "link", "set", "veth0", "mtu", 1400)
    wait_until(lambda: udp_mtu(near, "udp4") == 1372, what="the smaller MTU")
    ip("-n", path.ends[0], "link", "set", "veth0", "mtu", 9000)
    wait_until(lambda: udp_mtu(near, "udp4") == 8800, what="the larger MTU")


def test_on_the_host_itself_packets_stay_whole(router):
    router.namehop("face", "create", "udp4://127.0.0.1:7001")
    assert udp_mtu(router, "udp4") == 8800
