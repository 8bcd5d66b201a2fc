"""P4Runtime: p4runtime-shell, an independent controller, changes a running P4 program and exchanges packets with it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess

import grpc
import p4runtime_sh.shell as sh
import pytest
from conftest import PATIENCE, PROGRAM, run_namehop
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4runtime_pb2_grpc
from p4_programs import write_program
from p4runtime_sh.p4runtime import P4RuntimeClient, P4RuntimeException, P4RuntimeWriteException
from port_links import ip, needs_root

pytestmark = needs_root

# A table sends frames to a port or to the controller. A packet-out of the controller names its port.
FORWARDING = """
#include <core.p4>
#include <v1model.p4>
#define CPU_PORT 510
@controller_header("packet_in") header packet_in_t { bit<9> port; bit<7> rest; }
@controller_header("packet_out") header packet_out_t { bit<9> port; bit<7> rest; }
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; }
struct meta_t { }
struct seen_t { bit<48> address; bit<9> port; }
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { transition select(standard.ingress_port) { CPU_PORT: from_controller; default: ethernet; } }
    state from_controller { packet.extract(hdr.packet_out); transition ethernet; }
    state ethernet { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Forward(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) received;
    meter(2, MeterType.packets) limits;
    register<bit<48>>(4) last;
    action send(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }
    action to_controller() {
        standard.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.port = standard.ingress_port;
    }
    action copy(bit<16> group) { standard.mcast_grp = group; }
    action mirror(bit<32> session) { clone(CloneType.I2E, session); mark_to_drop(standard); }
    table stations {
        key = { hdr.ethernet.destination: exact; }
        actions = { send; drop; to_controller; copy; mirror; }
        default_action = drop();
        size = 64;
    }
    table filter {
        key = { hdr.ethernet.source: ternary; hdr.ethernet.type: range; standard.ingress_port: optional; }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.port;
            hdr.packet_out.setInvalid();
        } else {
            bit<2> color;
            received.count((bit<32>)standard.ingress_port);
            limits.execute_meter((bit<32>)standard.ingress_port, color);
            last.write((bit<32>)standard.ingress_port, hdr.ethernet.source);
            digest<seen_t>(1, { hdr.ethernet.source, standard.ingress_port });
            stations.apply();
            filter.apply();
        }
    }
}
control ForwardEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.packet_in); packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), Forward(), ForwardEgress(), Update(), Deparse()) main;
"""

STATION, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
FRAME = bytes.fromhex("020000000001" "020000000077" "88b5") + bytes(range(64))


def reply(timeout=PATIENCE):
    """Returns the next packet-in."""
    return sh.client.get_stream_packet("packet", timeout=timeout)


class Wire:
    """A veth pair: the switch has one end, and the test sends and receives frames at the other."""

    def __init__(self, number=0):
        self.near, self.far = (f"p4c{number}-{os.getpid()}{end}" for end in "ab")

    def __enter__(self):
        # One queue at each end, because AF_XDP serves only one queue here.
        queues = ["numrxqueues", "1", "numtxqueues", "1"]
        ip("link", "add", self.near, *queues, "type", "veth", "peer", "name", self.far, *queues)
        for device in (self.near, self.far):
            # Keep the kernel from sending packets of its own, so that packet counts are exact.
            subprocess.run(["sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1"], check=True)
            ip("link", "set", device, "up")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
        self.socket.bind((self.far, 0x88B5))
        self.socket.settimeout(PATIENCE)
        return self

    def __exit__(self, *_):
        self.socket.close()
        ip("link", "delete", self.near)

    def receive(self):
        """Returns the next frame that the test did not send itself."""
        while True:
            frame, address = self.socket.recvfrom(4096)
            if address[2] != socket.PACKET_OUTGOING:
                return frame


class Switch:
    """A running `namehop p4 run` with a P4Runtime server."""

    def __init__(self, folder, wire, text=FORWARDING):
        self.program, self.p4info = folder / "forward.so", folder / "forward.p4info.txt"
        self.socket = folder / "control"
        write_program(text, self.program, self.p4info)
        command = [PROGRAM, "p4", "run", self.program, "--port", f"0=dev://{wire.near}", "--json"]
        command += ["--p4runtime", "127.0.0.1:0", "--cpu-port", "510", "--device-id", "7", "--control", self.socket]
        command = list(map(str, command))
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [self.process.stderr.readline() for _ in range(2)]
        found = re.search(r"P4Runtime at (127\.0\.0\.1:\d+)", lines[1])
        assert found, lines
        self.address = found[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self):
        """Ends the switch and returns its report."""
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, errors) == (0, "")
        return json.loads(output.splitlines()[-1])

    @contextlib.contextmanager
    def shell(self, **options):
        """Connects p4runtime-shell."""
        sh.setup(device_id=7, grpc_addr=self.address, election_id=(0, 5), verbose=False, **options)
        try:
            yield
        finally:
            sh.teardown()


@pytest.fixture
def wire():
    with Wire() as wire:
        yield wire


@pytest.fixture
def switch(tmp_path, wire):
    with Switch(tmp_path, wire) as switch:
        yield switch


def station(action, address=STATION, **params):
    entry = sh.TableEntry("stations")(action=action)
    entry.match["hdr.ethernet.destination"] = address
    for name, value in params.items():
        entry.action[name] = value
    return entry


def refusal(work):
    """Returns the error message of a write that must fail."""
    with pytest.raises(P4RuntimeWriteException) as refused:
        work()
    return str(refused.value)


def cell(kind, name, index):
    """Reads a cell of a counter or meter."""
    entry = kind(name)
    entry.index = index
    (found,) = entry.read()
    return found


def test_a_controller_sets_the_pipeline_and_exchanges_packets(switch, wire):
    config = sh.FwdPipeConfig(switch.p4info, switch.program)
    with switch.shell(config=config):
        assert sh.client.api_version() == "1.4.0"
        station("to_controller").insert()
        wire.socket.send(FRAME)
        packet = reply().packet
        assert packet.payload == FRAME
        assert [(field.metadata_id, field.value) for field in packet.metadata] == [(1, b"\0"), (2, b"\0")]
        sh.PacketOut(payload=FRAME, port="0", rest="0").send()
        assert wire.receive() == FRAME
        # From now on the entry sends frames back.
        station("send", port="0").modify()
        wire.socket.send(FRAME + b"more")
        assert wire.receive() == FRAME + b"more"
        counted = cell(sh.CounterEntry, "received", 0)
        assert (counted.packet_count, counted.byte_count) == (2, 2 * len(FRAME) + 4)
        # Setting the pipeline again clears tables and counters.
        sh.client.set_fwd_pipe_config(switch.p4info, switch.program)
        assert (list(sh.TableEntry("stations").read()), cell(sh.CounterEntry, "received", 0).packet_count) == ([], 0)
    report = switch.end()
    assert (report["lost"], report["no_port"], report["oversized"]) == (0, 0, 0)
    assert {port["port"]: (port["received_packets"], port["sent_packets"]) for port in report["ports"]} == {
        0: (2, 2),
        510: (1, 1),
    }


def test_what_is_written_is_read_and_what_is_wrong_is_named(switch, wire):
    with switch.shell():
        entry = station("send", port="3")
        entry.insert()
        assert "ALREADY_EXISTS" in refusal(entry.insert)
        assert "NOT_FOUND" in refusal(station("drop", OTHER).delete)
        assert "NOT_FOUND" in refusal(station("drop", OTHER).modify)
        (read,) = sh.TableEntry("stations").read()
        assert read.match["hdr.ethernet.destination"].exact.value == b"\x02\0\0\0\0\x01"
        assert (read.action.action_name, read.action["port"].value) == ("Forward.send", b"\x03")
        rule = sh.TableEntry("filter")(action="drop", priority=9)
        rule.match["hdr.ethernet.source"] = "02:00:00:00:00:00&&&ff:ff:ff:00:00:00"
        rule.match["hdr.ethernet.type"] = "0x800..0x8ff"
        rule.match["standard.ingress_port"] = "2"
        rule.insert()
        (read,) = sh.TableEntry("filter").read()
        source, kind = read.match["hdr.ethernet.source"].ternary, read.match["hdr.ethernet.type"].range
        assert (source.value, source.mask) == (b"\x02\0\0\0\0\0", b"\xff\xff\xff\0\0\0")
        assert (kind.low, kind.high, read.priority) == (b"\x08\0", b"\x08\xff", 9)
        assert read.match["standard.ingress_port"].optional.value == b"\x02"
        rule.priority = 0
        assert "priority" in refusal(rule.insert)
        default = sh.TableEntry("stations")(action="to_controller", is_default=True)
        default.modify()
        wire.socket.send(b"\2\0\0\0\0\2" + FRAME[6:])
        assert reply().packet.payload[:6] == b"\2\0\0\0\0\2"
        for number in range(63):
            station("drop", f"02:00:00:00:01:{number:02x}").insert()
        assert "RESOURCE_EXHAUSTED" in refusal(station("drop", "02:00:00:00:02:00").insert)
        assert len(list(sh.TableEntry("stations").read())) == 64
        meter = sh.MeterEntry("limits")
        meter.index, meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 10, 20, 30, 40
        meter.modify()
        meter = cell(sh.MeterEntry, "limits", 1)
        assert (meter.cir, meter.cburst, meter.pir, meter.pburst) == (10, 20, 30, 40)
        group = sh.MulticastGroupEntry(5)
        group.add(0, 1).add(0, 2)
        group.insert()
        assert "ALREADY_EXISTS" in refusal(group.insert)
        (read,) = sh.MulticastGroupEntry(5).read()
        assert [replica.instance for replica in read.replicas] == [1, 2]
        station("copy", group="5").modify()
        wire.socket.send(FRAME)
        assert [wire.receive(), wire.receive()] == [FRAME, FRAME]
        session = sh.CloneSessionEntry(9)
        session.add(0, 1)
        session.insert()
        assert "NOT_FOUND" in refusal(sh.CloneSessionEntry(8).delete)
        reports = sh.DigestEntry("seen_t")
        reports.max_list_size = 2
        reports.insert()
        # Reports of two earlier frames are still queued.
        wire.socket.send(FRAME)
        listed = sh.client.get_stream_packet("digest", timeout=PATIENCE).digest
        values = [[member.bitstring for member in value.struct.members] for value in listed.data]
        assert values[0] == [b"\x02\0\0\0\0\x77", b"\0"]


def test_other_programs_and_other_controllers_are_refused(switch, tmp_path):
    with switch.shell():
        text = switch.p4info.read_text()
        wrong = tmp_path / "wrong.txt"
        for old, new, named in [
            ("bitwidth: 48", "bitwidth: 47", "differs"),
            ('name: "Forward.stations"', 'name: "Forward.others"', "Forward.others"),
        ]:
            wrong.write_text(text.replace(old, new))
            with pytest.raises(P4RuntimeException, match=named) as refused:
                sh.client.set_fwd_pipe_config(wrong, switch.program)
            assert refused.value.grpc_error.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(P4RuntimeException, match="p4_device_config"):
            sh.client.set_fwd_pipe_config(switch.p4info, wrong)
        station("send", port="1").insert()
        backup = P4RuntimeClient(7, switch.address, (0, 4))
        try:
            with pytest.raises(P4RuntimeException) as refused:
                backup.set_fwd_pipe_config(switch.p4info, switch.program)
            assert refused.value.grpc_error.code() == grpc.StatusCode.PERMISSION_DENIED
            # A backup controller may read.
            assert backup.get_p4info().tables
        finally:
            backup.tear_down()
        entry = station("send", OTHER, port="1")
        request = sh.p4runtime_pb2.WriteRequest(device_id=7)
        request.election_id.low = 4
        with pytest.raises(grpc.RpcError) as refused:
            sh.client.stub.Write(request)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
        entry.insert()
        assert len(list(sh.TableEntry("stations").read())) == 2, "nothing was half done"


def test_any_bytes_and_silence_harm_nobody(switch):
    host, port = switch.address.split(":")
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for junk in [b"GET / HTTP/1.1\r\n\r\n", os.urandom(2000), hello + os.urandom(2000), hello[:10]]:
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            with contextlib.suppress(ConnectionError):
                client.sendall(junk)
        with switch.shell():
            channel = sh.client.channel
            for method in ("Write", "Read", "SetForwardingPipelineConfig", "Other"):
                call = channel.unary_unary(f"/p4.v1.P4Runtime/{method}")
                for message in (b"\xff" * 100, os.urandom(5000)):
                    with pytest.raises(grpc.RpcError):
                        call(message, timeout=PATIENCE)
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/p4.v1.P4Runtime/Write")(bytes(20 << 20), timeout=PATIENCE)
            station("send", port="1").insert()
            assert len(list(sh.TableEntry("stations").read())) == 1


def test_clients_that_do_nothing_keep_no_controller_out(switch):
    host, port = switch.address.split(":")
    # An empty SETTINGS frame.
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with contextlib.ExitStack() as stack:
        for number in range(40):
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            client.sendall(hello if number % 4 else b"")
        with switch.shell():
            station("send", port="1").insert()
            # New idle connections displace idle connections, but not the controller, which has an open stream.
            for _ in range(40):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE)).sendall(hello)
            station("send", OTHER, port="1").insert()
            assert len(list(sh.TableEntry("stations").read())) == 2


@pytest.mark.parametrize("count", [1, 130, 250, 3000])
def test_a_controller_sees_which_of_many_updates_failed(switch, count):
    with switch.shell():
        station("send", port="1").insert()
        request = sh.p4runtime_pb2.WriteRequest(device_id=7)
        request.election_id.low = 5
        for number in range(count):
            update = request.updates.add()
            update.type = sh.p4runtime_pb2.Update.MODIFY if number % 10 == 5 else sh.p4runtime_pb2.Update.INSERT
            entry = station("send", port="2")
            entry._update_msg()
            update.entity.table_entry.CopyFrom(entry._entry)
        with pytest.raises(grpc.RpcError) as refused:
            sh.client.stub.Write(request)
        assert refused.value.code() == grpc.StatusCode.UNKNOWN, refused.value
        failed = count - sum(number % 10 == 5 for number in range(count))
        assert refused.value.details().startswith(f"{failed} of {count} updates failed")
        (details,) = [value for key, value in refused.value.trailing_metadata() if key == "grpc-status-details-bin"]
        status = status_pb2.Status.FromString(details)
        errors = []
        for detail in status.details:
            error = sh.p4runtime_pb2.Error()
            assert detail.Unpack(error)
            errors.append(error)
        assert len(errors) == count or len(errors) >= 230
        for number, error in enumerate(errors):
            expected = code_pb2.OK if number % 10 == 5 else code_pb2.ALREADY_EXISTS
            assert error.canonical_code == expected, (number, error)
        assert "already has an entry with this key" in errors[0].message


def inserting(destination, *, device_id=0, election_id=0):
    """A request that adds a station."""
    request = sh.p4runtime_pb2.WriteRequest(device_id=device_id)
    if election_id:
        request.election_id.low = election_id
    entry = station("send", destination, port="1")
    entry._update_msg()
    update = request.updates.add()
    update.type = sh.p4runtime_pb2.Update.INSERT
    update.entity.table_entry.CopyFrom(entry._entry)
    return request


def test_the_operator_needs_no_election_but_the_control_socket(switch):
    # gRPC derives an authority from the path otherwise, which is not a valid one.
    options = [("grpc.default_authority", "localhost")]
    with switch.shell(), grpc.insecure_channel(f"unix:{switch.socket}", options) as channel:
        operator = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        # A controller is primary. The operator's writes neither need that nor change it.
        operator.Write(inserting(STATION), timeout=PATIENCE)
        sh.client.stub.Write(inserting(OTHER, device_id=7, election_id=5), timeout=PATIENCE)
        assert len(list(sh.TableEntry("stations").read())) == 2
        run_namehop("p4", "table", "delete", f'stations destination:"{STATION}"', "--control", switch.socket)
        assert len(list(sh.TableEntry("stations").read())) == 1
        # At the address, all of it is refused.
        for device_id, code in [(0, grpc.StatusCode.NOT_FOUND), (7, grpc.StatusCode.PERMISSION_DENIED)]:
            with pytest.raises(grpc.RpcError) as refused:
                sh.client.stub.Write(inserting(STATION, device_id=device_id), timeout=PATIENCE)
            assert refused.value.code() == code
        for method in ("SetMirror", "TakeReports"):
            assert channel.unary_unary(f"/namehop.p4.v1.Operator/{method}")(b"", timeout=PATIENCE) == b""
            with pytest.raises(grpc.RpcError) as refused:
                sh.client.channel.unary_unary(f"/namehop.p4.v1.Operator/{method}")(b"", timeout=PATIENCE)
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
        # A controller can also use the control socket, and then takes part in the elections.
        with pytest.raises(grpc.RpcError) as refused:
            operator.Write(inserting(STATION, device_id=7, election_id=6), timeout=PATIENCE)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_nobody_listens_beyond_this_machine_without_being_told_to(tmp_path):
    result = run_namehop("p4", "run", "x.so", "--port", "0=dev://x", "--p4runtime", "0.0.0.0:9559", check=False)
    assert result.returncode != 0 and "--p4runtime-remote" in result.stderr
