"""Compiled P4 programs on ports (`namehop p4 run`): between sockets of two hosts, with tables that change while packets flow."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from conftest import PATIENCE, PROGRAM, ROOT, run_namehop, wait_until
from p4_programs import write_program
from port_links import Link, ip, needs_root
from test_capture import Capture

pytestmark = needs_root

IPV4 = (ROOT / "p4/runtime/programs/ipv4.p4").read_text()
HOSTS = ["192.0.2.1", "198.51.100.1"]
GATEWAYS = ["192.0.2.254", "198.51.100.254"]
# Source addresses that ipv4.p4 writes into frames that leave by ports 0 and 1.
PORT_ADDRESSES = ["02:00:00:00:00:00", "02:00:00:00:00:01"]
HOST_ADDRESSES = ["02:01:00:00:00:00", "02:01:00:00:00:01"]
FLOWS = 4
UDP_PORT = 5000
USUAL_TTL = 64


class SwitchedLink(Link):
    """Two hosts, each in a network namespace, with a veth pair to a third namespace, where a switch has the interfaces p0 and p1."""

    def __enter__(self):
        self.middle = f"{self.name}s"
        ip("netns", "add", self.middle)
        return super().__enter__()

    def __exit__(self, *failure):
        super().__exit__(*failure)
        subprocess.run(["ip", "netns", "delete", self.middle], check=False, capture_output=True)

    def make(self):
        for namespace in [*self.namespaces, self.middle]:
            # Keep the kernel from sending packets of its own, so that packet counts are exact.
            for which in ["all", "default"]:
                command = ["sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1"]
                subprocess.run(["ip", "netns", "exec", namespace, *command], check=True)
        for end, (namespace, device) in enumerate(zip(self.namespaces, self.devices)):
            near = [device, "netns", namespace, "address", HOST_ADDRESSES[end]]
            ip("link", "add", *near, "type", "veth", "peer", "name", f"p{end}", "netns", self.middle)
            ip("-n", self.middle, "link", "set", f"p{end}", "up")
            ip("-n", namespace, "address", "add", f"{HOSTS[end]}/24", "dev", device)
        self.set("up")
        for end, (namespace, device) in enumerate(zip(self.namespaces, self.devices)):
            other = [HOST_ADDRESSES[1 - end], "nud", "permanent", "dev", device]
            ip("-n", namespace, "neighbour", "replace", GATEWAYS[end], "lladdr", *other)
            ip("-n", namespace, "route", "add", f"{HOSTS[1 - end]}/32", "via", GATEWAYS[end])


# Sends numbered datagrams in several flows between "start" and "stop", and reports the received numbers in order of arrival.
HOST = """
import json, socket, sys, threading, time
own, other, flows, first = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
came = [[] for _ in range(flows)]
def receive(flow, peer):
    while True:
        came[flow].append(int(peer.recv(2048)[:8]))
peers = []
for flow in range(flows):
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind((own, first + flow))
    peer.connect((other, first + flow))
    threading.Thread(target=receive, args=(flow, peer), daemon=True).start()
    peers.append(peer)
number, is_sending = 0, threading.Event()
def send():
    global number
    while is_sending.is_set():
        for flow, peer in enumerate(peers):
            peer.send((b"%08d" % number).ljust(8 + (number * 37 + flow) % 1400, b"."))
        number += 1
        time.sleep(0.002)
for line in sys.stdin:
    match line.strip():
        case "start":
            is_sending.set()
            sender = threading.Thread(target=send)
            sender.start()
            answer = number
        case "stop":
            is_sending.clear()
            sender.join()
            answer = number
        case "next":
            # A datagram of this number may be on its way already.
            answer = number + 1
        case "came":
            answer = [list(flow) for flow in came]
    print(json.dumps(answer), flush=True)
"""


class Host:
    """A process with UDP sockets in the network namespace at one end."""

    def __init__(self, link, end):
        command = [*link.inside(end), sys.executable, "-c", HOST, HOSTS[end], HOSTS[1 - end], str(FLOWS), str(UDP_PORT)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("came")

    def ask(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def hosts(link):
    both = []
    try:
        for end in (0, 1):
            both.append(Host(link, end))
        yield both
    finally:
        for host in both:
            host.stop()


class Switch:
    """A running `namehop p4 run` with a control socket."""

    def __init__(self, folder, text, link, *arguments, ports=("dev://p0", "dev://p1")):
        self.control = folder / "control.sock"
        program = folder / "program.so"
        write_program(text, program)
        ports = [argument for end, uri in enumerate(ports) for argument in ("--port", f"{end}={uri}")]
        command = [PROGRAM, "p4", "run", program, *ports, "--control", self.control, "--json", *arguments]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", link.middle, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stderr.readline()
        assert line.startswith("running"), line + self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, *arguments, **options):
        return run_namehop("p4", *arguments, "--control", self.control, **options)

    def refusal(self, *arguments):
        """Returns the error message of a request that must fail."""
        result = self.ask(*arguments, check=False)
        assert result.returncode != 0 and result.stdout == "", result
        return result.stderr

    def response(self, request):
        """Sends arbitrary bytes to the control socket and returns what comes back."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(self.control))
            with contextlib.suppress(ConnectionError):
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
            text = b""
            with contextlib.suppress(ConnectionError):
                while part := client.recv(65536):
                    text += part
        return text

    def end(self):
        """Ends the switch and returns its reports."""
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, errors) == (0, "")
        assert not self.control.exists()
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def link():
    with SwitchedLink(f"p4r{os.getpid()}") as link:
        yield link


def has_come(host, last):
    """True if the last datagram of each flow has arrived."""
    return all(flow and flow[-1] == last - 1 for flow in host.ask("came"))


def check_order(came, first, last):
    """Checks that all datagrams from `first` on have arrived, and that the received datagrams are in order and without duplicates."""
    for flow in came:
        assert flow == sorted(set(flow)), "in order and once"
        assert [number for number in flow if number >= first] == list(range(first, last))


@contextlib.contextmanager
def captures(link, folder):
    with Capture(link, 0, folder / "0.pcapng") as left, Capture(link, 1, folder / "1.pcapng") as right:
        yield [left, right]


def seen(capture, host):
    """Returns, for each UDP packet to a host: source and destination MAC address, time to live, and the status of both checksums."""
    checked = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    command = ["tshark", "-r", str(capture.file), "-n", *checked, "-Y", f"udp and ip.dst == {host}", "-T", "fields"]
    for field in ["eth.src", "eth.dst", "ip.ttl", "ip.checksum.status", "udp.checksum.status"]:
        command += ["-e", field]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_routes_come_while_datagrams_flow_both_ways(link, tmp_path, workers):
    routes = tmp_path / "routes"
    others = [f"routes destination:10.{number >> 8}.{number & 255}.0/24 drop()\n" for number in range(5_000)]
    routes.write_text("".join([*others, f"routes destination:{HOSTS[0]}/24 send(port:0)  # to the left\n"]))
    with Switch(tmp_path, IPV4, link, "--workers", workers) as switch, hosts(link) as both:
        for host in both:
            host.ask("start")
        wait_until(lambda: all(host.ask("next") > 50 for host in both), what="datagrams flow")
        assert [host.ask("came") for host in both] == [[[]] * FLOWS] * 2, "there are no routes yet"
        switch.ask("table", "add", f"routes destination:{HOSTS[1]}/32 send(port:1)")
        firsts = [both[0].ask("next")]
        wait_until(lambda: all(both[1].ask("came")), what="datagrams to the right")
        assert both[0].ask("came") == [[]] * FLOWS, "there is no route to the left yet"
        assert json.loads(switch.ask("table", "load", routes, "--json").stdout) == {"loaded": len(others) + 1}
        firsts.append(both[1].ask("next"))
        wait_until(lambda: both[1].ask("next") > firsts[1] + 200, what="more datagrams")
        assert len(switch.ask("table", "list", "routes").stdout.splitlines()) == len(others) + 2
        lasts = [host.ask("stop") for host in both]
        for end, host in enumerate(both):
            wait_until(lambda: has_come(host, lasts[1 - end]), what="the last datagrams")
        came = [host.ask("came") for host in both]
        (report,) = switch.end()
    for end in (0, 1):
        check_order(came[1 - end], firsts[end], lasts[end])
    assert report["workers"] == workers
    lost = ["lost", "no_port", "no_buffer", "oversized"]
    assert [report[reason] for reason in lost] == [0] * len(lost)
    arrived = [sum(map(len, flows)) for flows in came]
    sent = [FLOWS * last for last in lasts]
    for end, port in enumerate(report["ports"]):
        assert (port["port"], port["uri"], port["up"]) == (end, f"dev://p{end}", True)
        assert (port["received_packets"], port["sent_packets"]) == (sent[end], arrived[end])
        failures = ["output_full", "receive_ring_full", "no_buffer", "malformed", "send_failed"]
        assert [port[reason] for reason in failures] == [0] * len(failures)
    assert report["dropped"] == sum(sent) - sum(arrived) > 0


def test_the_kernel_receives_from_a_tap_interface(link, tmp_path):
    with Switch(tmp_path, IPV4, link, ports=["dev://p0", "tap://t1"]) as switch, hosts(link) as both:
        switch.ask("table", "add", f"routes destination:{HOSTS[1]}/32 send(port:1)")
        both[0].ask("start")

        def received():
            counter = ["cat", "/sys/class/net/t1/statistics/rx_packets"]
            command = ["ip", "netns", "exec", link.middle, *counter]
            return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        wait_until(lambda: received() > 50, what="datagrams come to the kernel")
        last = both[0].ask("stop")
        wait_until(lambda: received() == FLOWS * last, what="the last datagrams")
        (report,) = switch.end()
    port = report["ports"][1]
    assert (port["uri"], port["spread"], port["sent_packets"]) == ("tap://t1", "not at all", FLOWS * last)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_tshark_sees_the_time_to_live_and_checksums_of_routed_packets(link, tmp_path):
    with Switch(tmp_path, IPV4, link) as switch, captures(link, tmp_path) as both_captures, hosts(link) as both:
        for end in (0, 1):
            switch.ask("table", "add", f"routes destination:{HOSTS[end]}/32 send(port:{end})")
        for host in both:
            host.ask("start")
        wait_until(lambda: all(host.ask("next") > 100 for host in both), what="datagrams flow")
        lasts = [host.ask("stop") for host in both]
        for end, host in enumerate(both):
            wait_until(lambda: has_come(host, lasts[1 - end]), what="the last datagrams")
        switch.end()
    for end, capture in enumerate(both_captures):
        # tshark reports 1 for a correct checksum.
        expected = [PORT_ADDRESSES[end], HOST_ADDRESSES[end], str(USUAL_TTL - 1), "1", "1"]
        assert seen(capture, HOSTS[end]) == [expected] * (FLOWS * lasts[1 - end])


# Frames of a port go to the port that a table of two entries names, and are counted.
COUNTING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { }
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Counting(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(2, CounterType.packets_and_bytes) all;
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) { standard.egress_spec = port; all.count((bit<32>)standard.ingress_port); }
    table wires { key = { standard.ingress_port: exact; } actions = { send; drop; } default_action = drop(); size = 2; }
    apply { wires.apply(); }
}
control CountingEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), Counting(), CountingEgress(), Update(), Deparse()) main;
"""

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MALFORMED = {
    "no HTTP/2": b'{"request":"table-list","table":null}\n',
    "empty": b"\n",
    "part of the preface": HELLO[:10],
    "no frames": HELLO + b"\xff" * 1_000,
    "many": b"{}\n" * 1_000,
    "random": HELLO + os.urandom(5_000),
}


def test_bad_requests_and_full_tables_are_refused_and_packets_flow_on(link, tmp_path):
    entries = tmp_path / "entries"
    with Switch(tmp_path, COUNTING, link) as switch, hosts(link) as both:
        for end in (0, 1):
            switch.ask("table", "add", f"wires ingress_port:{end} send(port:{1 - end})")
        before = switch.ask("table", "list").stdout
        for host in both:
            host.ask("start")
        wait_until(lambda: all(all(host.ask("came")) for host in both), what="datagrams flow")
        for name, request in MALFORMED.items():
            # At most frames that open and close the connection.
            assert len(switch.response(request)) < 200, name
        for arguments, words in [
            (["table", "add", "wires ingress_port:2 drop()"], ["Counting.wires", "full"]),
            (["table", "add", "wires ingress_port:1 drop()"], ["Counting.wires"]),
            (["table", "add", "wires ingress_port:512 drop()"], ["Counting.wires", "9 bits"]),
            (["table", "add", "wires ingress_port:2 send(port:512)"], ["Counting.wires", "'port' of 9 bits"]),
            (["table", "add", "wires port:2 drop()"], ["Counting.wires", "ingress_port"]),
            (["table", "delete", "wires ingress_port:2"], ["Counting.wires", "no entry"]),
            (["counter", "read", "all", "2"], ["Counting.all", "2 cells"]),
        ]:
            refusal = switch.refusal(*arguments)
            assert all(word in refusal for word in words), refusal
        entries.write_text("wires ingress_port:1 drop()\n\nwires ingress_port:3 nothing()\n")
        assert "nothing was loaded" in (refusal := switch.refusal("table", "load", entries)) and "line 3" in refusal
        assert switch.ask("table", "list").stdout == before
        firsts = [host.ask("next") for host in both]
        wait_until(lambda: all(host.ask("next") > first + 50 for host, first in zip(both, firsts)), what="more datagrams")
        lasts = [host.ask("stop") for host in both]
        for end, host in enumerate(both):
            wait_until(lambda: has_come(host, lasts[1 - end]), what="the last datagrams")
            check_order(host.ask("came"), 0, lasts[1 - end])
        counted = json.loads(switch.ask("counter", "read", "all", "--json").stdout)
        (report,) = switch.end()
    assert counted["counter"] == "Counting.all"
    for cell, port, last in zip(counted["cells"], report["ports"], lasts, strict=True):
        assert cell == {"index": port["port"], "packets": port["received_packets"], "bytes": port["received_bytes"]}
        assert port["received_packets"] == FLOWS * last
    assert report["dropped"] == 0
