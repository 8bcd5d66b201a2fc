"""Ports of running P4 programs: AF_XDP, and shared memory between two switches (memif). Packet sockets and captures are tested in
`test_p4_run.py` and in the crate.
"""

import contextlib
import json
import signal
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from port_links import needs_root
from p4_programs import write_program
from test_p4_runtime import Wire

pytestmark = needs_root

# Frames from one port of a pair leave by the other, with an incremented hop count.
CROSSING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> kind; bit<8> hops; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { }
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Cross(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = standard.ingress_port ^ 1; hdr.ethernet.hops = hdr.ethernet.hops + 1; }
}
control CrossEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), Cross(), CrossEgress(), Update(), Deparse()) main;
"""
FRAMES = 200


@pytest.fixture
def program(tmp_path):
    result = tmp_path / "crossing.so"
    write_program(CROSSING, result)
    return result


@contextlib.contextmanager
def switch(program, *ports):
    """Runs a switch. Its report is appended to the yielded list when it ends."""
    command = [PROGRAM, "p4", "run", str(program), "--json"]
    for number, port in enumerate(ports):
        command += ["--port", f"{number}={port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    reports = []
    try:
        first = process.stderr.readline()
        assert first.startswith("running"), first + process.stderr.read()
        yield reports
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
        reports.append(json.loads(output.splitlines()[-1]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def frame(number, hops=0):
    head = bytes.fromhex("020000000001" "020000000077" "88b5") + bytes([hops]) + number.to_bytes(2)
    return head + bytes([number % 256]) * (50 + number * 7 % 1300)


def passes(one, other):
    """True if a frame gets through. The path may not be up yet."""
    one.socket.send(frame(0))
    other.socket.settimeout(0.2)
    try:
        return bool(other.receive())
    except TimeoutError:
        return False
    finally:
        other.socket.settimeout(PATIENCE)


def settle(*wires):
    """Reads and discards frames that are still in flight."""
    for wire in wires:
        wire.socket.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while True:
                wire.receive()
        wire.socket.settimeout(PATIENCE)


def exchange(one, other, hops):
    """Sends frames in both directions and checks that each arrives unmodified and in order."""
    settle(one, other)
    for from_wire, to_wire in [(one, other), (other, one)]:
        for first in range(1, FRAMES, 20):
            numbers = range(first, min(first + 20, FRAMES))
            for number in numbers:
                from_wire.socket.send(frame(number))
            for number in numbers:
                assert to_wire.receive() == frame(number, hops)


def test_frames_cross_between_interfaces_over_af_xdp(program):
    with Wire(1) as one, Wire(2) as other:
        with switch(program, f"xdp://{one.near}", f"xdp://{other.near}") as reports:
            wait_until(lambda: passes(one, other), what="the interfaces are attached")
            exchange(one, other, 1)
        (report,) = reports
        assert (report["lost"], report["no_port"], report["oversized"]) == (0, 0, 0)
        assert all(port["sent_packets"] >= FRAMES - 1 for port in report["ports"])


def test_frames_cross_two_switches_that_share_memory(program, tmp_path):
    link = f"memif://{tmp_path}/memif.sock?id=3"
    with Wire(1) as one, Wire(2) as other:
        with switch(program, f"dev://{one.near}", link) as near, switch(program, f"{link}&role=client", f"dev://{other.near}") as far:
            wait_until(lambda: passes(one, other), what="the memif connects")
            exchange(one, other, 2)
        for report in [*near, *far]:
            assert (report["lost"], report["no_port"]) == (0, 0)
            losses = ["receive_ring_full", "malformed", "send_failed", "no_buffer"]
            assert all(port[loss] == 0 for port in report["ports"] for loss in losses), report
