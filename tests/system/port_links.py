"""Helpers of the port tests: veth pairs between network namespaces, routers at their ends, and queries about their ports."""

import os
import struct
import subprocess

import pytest
from conftest import of_threads, wait_until

ETHERTYPE = 0x8624
GROUP = "01:00:5e:00:17:aa"
MEGABYTE = 1_000_000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="ports over veth pairs and in network namespaces need root")


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


def narrow_silently(namespace, device, mtu_bytes):
    """Lowers the MTU of an interface of a kernel router, and drops the ICMP messages by which it reports larger packets."""
    for family in ("-4", "-6"):
        # Only packets that the namespace itself sends come in from `lo`.
        ip(family, "-n", namespace, "rule", "add", "iif", "lo", "lookup", 100, "priority", 1)
        ip(family, "-n", namespace, "route", "add", "blackhole", "default", "table", 100)
    ip("-n", namespace, "link", "set", device, "mtu", mtu_bytes)


class Link:
    """A veth pair between two network namespaces. Both namespaces are removed at the end."""

    def __init__(self, name, *options):
        self.name = name
        # Options of `ip link` for both ends.
        self.options = options
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
        near, far = [one, "netns", left, *self.options], [other, "netns", right, *self.options]
        ip("link", "add", *near, "type", "veth", "peer", "name", *far)
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
    """Returns a configuration of ports. It has fewer packet buffers than the default, so that routers start faster."""
    forwarding = "[forwarding]\nsmall_buffers = 8192\nlarge_buffers = 2048\n"
    allowed = 'interfaces = ["all"]\nmemif_folders = ["/"]'
    return "\n".join([f"{forwarding}[ports]\nworker_processor = {processor % os.cpu_count()}\n{allowed}", *lines, ""])


def start(make_router, link, end, *lines):
    router = make_router(ports(end, *lines), name="near" if end == 0 else "far", start=False)
    router.prefix = link.inside(end)
    return router.start()


def connect(near, far, link):
    """Creates a unicast face at each end. Returns the face ids."""
    faces = []
    for end, router in enumerate([near, far]):
        arguments = ["face", "create", link.uri(1 - end), "--local", link.local(end), "--persistency", "permanent"]
        faces.append(router.json(*arguments)["face_id"])
    return faces


def route(router, prefix, face):
    router.namehop("route", "add", prefix, face)


def wait_for_links(*routers):
    """Waits until all faces are up. The kernel may report a link up to a second after it works."""
    for router in routers:
        wait_until(lambda: all(face["is_up"] for face in router.json("face", "list")), what=f"the links of {router.name} are up")


def fetch(router, name, **options):
    return router.namehop("cat", name, text=False, **options).stdout


def drops(router, name):
    return router.json("status")["drops"].get("link", {}).get(name, 0)


def link_state(router):
    """Returns the link state in the router's last message: "up" or "down", or None without a message."""
    states = [line for line in router.log.read_text().splitlines() if "link state" in line]
    if not states:
        return None
    return "up" if states[-1].endswith("is_up=true") else "down"


def is_connected(router):
    return link_state(router) == "up"


def threads(router):
    return [name.strip() for name in of_threads(router.process, "comm")]


def processor_seconds(router):
    """Returns the CPU time of all threads since the start, in seconds."""
    with open(f"/proc/{router.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
