"""Members and groups of action profiles, direct counters and meters, idle time-outs, and value sets of a running P4 program. Changed by
p4runtime-shell, an independent controller, and by the commands.
"""

import json
import socket
import time

import p4runtime_sh.shell as sh
import pytest
from conftest import PATIENCE, ROOT, run_namehop
from port_links import needs_root
from test_p4_runtime import Switch, Wire, refusal

pytestmark = needs_root

EVERYTHING = (ROOT / "p4/runtime/programs/everything.p4").read_text()
# EtherType of all test frames. The program treats them as IPv4 if the value set contains it.
KIND = 0x88B5
HEADER = bytes.fromhex("020000000001" "020000000077" "88b5")
ROUTER = "02:00:00:00:00:01"
# Long enough for a frame that is not dropped to arrive.
PAUSE = 0.5


def ipv4(source, protocol=6):
    """Returns a frame to 10.0.0.1 with a checksum that the program does not check."""
    fields = bytes.fromhex("45000014 00000000 40") + bytes([protocol]) + b"\0\0"
    return HEADER + fields + source.to_bytes(4) + bytes([10, 0, 0, 1])


@pytest.fixture
def wire():
    with Wire() as wire:
        yield wire


@pytest.fixture
def switch(tmp_path, wire):
    with Switch(tmp_path, wire, EVERYTHING) as switch:
        yield switch


def fill_value_set(*kinds):
    """Sets the members of the parser's value set."""
    update = sh.p4runtime_pb2.Update()
    update.type = sh.p4runtime_pb2.Update.MODIFY
    entry = update.entity.value_set_entry
    entry.value_set_id = next(sets.preamble.id for sets in sh.context.p4info.value_sets)
    for kind in kinds:
        match = entry.members.add().match.add()
        match.field_id, match.exact.value = 1, kind.to_bytes(2)
    sh.client.write_update(update)


def read_value_set():
    entity = sh.p4runtime_pb2.Entity()
    entity.value_set_entry.value_set_id = 0
    (found,) = [entity for answer in sh.client.read_one(entity) for entity in answer.entities]
    return [member.match[0].exact.value for member in found.value_set_entry.members]


def member(number, address, change="insert"):
    made = sh.ActionProfileMember("next_hops")(member_id=number, action="next_hop")
    made.action["port"], made.action["address"] = "0", address
    getattr(made, change)()
    return made


def address(number):
    return f"02:00:00:00:01:{number:02x}"


def chosen(wire, sources):
    """Returns the last byte of the destination address of each returned frame."""
    seen = []
    for source in sources:
        wire.socket.send(ipv4(source))
        seen.append(wire.receive()[5])
    return seen


def route(**action):
    entry = sh.TableEntry("routes")(**action)
    entry.match["hdr.ipv4.destination"] = "10.0.0.0/8"
    return entry


def test_groups_share_packets_by_weight_and_change_at_once(switch, wire):
    with switch.shell():
        fill_value_set(KIND)
        assert read_value_set() == [KIND.to_bytes(2)]
        for number in (1, 2, 3):
            member(number, address(number))
        group = sh.ActionProfileGroup("next_hops")(group_id=7)
        group.add(1, weight=1).add(2, weight=3).insert()
        entry = route(group_id=7)
        entry.insert()
        sources = range(0xC0000200, 0xC0000280)
        first = chosen(wire, sources)
        assert set(first) == {1, 2} and first.count(2) > 1.5 * first.count(1)
        assert chosen(wire, sources) == first, "packets of one flow stay together"
        (read,) = sh.TableEntry("routes").read()
        assert read.group_id == 7
        (read,) = sh.ActionProfileGroup("next_hops").read()
        assert [(share.member_id, share.weight) for share in read.members] == [(1, 1), (2, 3)]
        # The entry's direct counter has counted all frames.
        counter = sh.DirectCounterEntry("route_hits")
        (counted,) = counter.read()
        assert counted.packet_count == 2 * len(sources)
        group.clear()
        group.add(3).modify()
        assert set(chosen(wire, sources[:8])) == {3}
        member(3, address(0x33), "modify")
        assert set(chosen(wire, sources[:8])) == {0x33}
        # Members and groups in use cannot be deleted. Each refusal names its reason.
        assert "FAILED_PRECONDITION" in refusal(sh.ActionProfileMember("next_hops")(member_id=3).delete)
        assert "FAILED_PRECONDITION" in refusal(sh.ActionProfileGroup("next_hops")(group_id=7).delete)
        assert "ALREADY_EXISTS" in refusal(lambda: member(3, address(3)))
        group.clear()
        assert "NOT_FOUND" in refusal(group.add(9).modify)
        group.clear()
        assert "RESOURCE_EXHAUSTED" in refusal(group.add(1, weight=65).modify)
        assert "NOT_FOUND" in refusal(route(group_id=8).modify)
        assert set(chosen(wire, sources[:8])) == {0x33}, "nothing was half done"
        # A single member instead of a group, and a one-shot action set.
        route(member_id=2).modify()
        assert set(chosen(wire, sources[:8])) == {2}
        entry = route()
        for number in (4, 5):
            action = sh.Action("next_hop")
            action["port"], action["address"] = "0", address(number)
            entry.oneshot.add(action, weight=2)
        entry.modify()
        assert set(chosen(wire, sources)) == {4, 5}
        (read,) = sh.TableEntry("routes").read()
        assert [action.weight for action in read.oneshot.actions] == [2, 2]
        entry.delete()
        sh.ActionProfileGroup("next_hops")(group_id=7).delete()
        for number in (1, 2, 3):
            sh.ActionProfileMember("next_hops")(member_id=number).delete()
        assert list(sh.ActionProfileMember("next_hops").read()) == []
    report = switch.end()
    assert (report["lost"], report["oversized"]) == (0, 0)


def rule(action, priority=1):
    entry = sh.TableEntry("Router.rules")(action=action, priority=priority)
    entry.match["hdr.ipv4.source"] = "192.0.2.0&&&255.255.255.0"
    return entry


def test_entries_have_counters_and_meters(switch, wire):
    with switch.shell():
        fill_value_set(KIND)
        member(1, address(1))
        route(member_id=1).insert()
        entry = rule("limit")
        entry.counter_data.packet_count = 1000
        entry.insert()
        wire.socket.send(ipv4(0xC0000201))
        wire.receive()
        (counted,) = sh.DirectCounterEntry("denials").read()
        length = len(ipv4(0))
        assert (counted.packet_count, counted.byte_count) == (1001, length)
        # One packet in ten minutes is green, and none is yellow.
        meter = sh.DirectMeterEntry("rule_limits")
        meter.table_entry = rule("limit")
        meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 1, 1, 1
        meter.modify()
        (read,) = sh.DirectMeterEntry("rule_limits").read()
        assert (read.cir, read.pburst) == (1, 1)
        for _ in range(5):
            wire.socket.send(ipv4(0xC0000201))
        wire.receive()
        wire.socket.settimeout(PAUSE)
        with pytest.raises(socket.timeout):
            wire.receive()
        wire.socket.settimeout(PATIENCE)
        counter = sh.DirectCounterEntry("denials")
        counter.table_entry = rule("limit")
        counter.packet_count, counter.byte_count = 0, 0
        counter.modify()
        (read,) = sh.DirectCounterEntry("denials").read()
        assert (read.packet_count, read.byte_count) == (0, 0)
        counter.table_entry = rule("limit", priority=2)
        assert "NOT_FOUND" in refusal(counter.modify)
        # The counter of a new entry starts at zero.
        rule("limit").delete()
        rule("deny").insert()
        assert [entry.packet_count for entry in sh.DirectCounterEntry("denials").read()] == [0]
        assert "time out" in refusal(lambda: idle("rules"))


def idle(table):
    """Inserts an entry with an idle time-out into a table without support for it."""
    update = sh.p4runtime_pb2.Update()
    update.type = sh.p4runtime_pb2.Update.INSERT
    entry = update.entity.table_entry
    entry.CopyFrom(rule("deny", priority=3).msg())
    entry.idle_timeout_ns = 1
    sh.client.write_update(update)


def test_the_controller_is_told_once_of_entries_that_nobody_uses(switch, wire):
    with switch.shell():
        outlet = sh.ActionProfileMember("outlets")(member_id=1, action="send")
        outlet.action["port"] = "0"
        outlet.insert()
        entry = sh.TableEntry("stations")(member_id=1)
        entry.match["hdr.ethernet.destination"] = ROUTER
        entry.idle_timeout_ns = 300_000_000
        entry.metadata = b"mine"
        began = time.monotonic()
        entry.insert()

        def told():
            answer = sh.client.get_stream_packet("idle_timeout_notification", timeout=PATIENCE)
            (entry,) = answer.idle_timeout_notification.table_entry
            return entry.match[0].exact.value, entry.metadata

        assert told() == (bytes.fromhex("020000000001"), b"mine")
        assert time.monotonic() - began >= 0.3
        (read,) = sh.TableEntry("stations").read()
        assert read.idle_timeout_ns == 300_000_000
        assert sh.client.get_stream_packet("idle_timeout_notification", timeout=1) is None
        wire.socket.send(HEADER + bytes(50))
        wire.receive()
        assert told()[1] == b"mine"


def test_commands_change_profiles_and_value_sets(switch, wire, tmp_path):
    def ask(*arguments, check=True):
        return run_namehop("p4", *arguments, "--control", switch.socket, check=check)

    ask("value-set", "set", "like_ipv4", hex(KIND), "0x1234")
    assert ask("value-set", "list", "Parse.like_ipv4").stdout == "0x88b5\n0x1234\n"
    for number in (1, 2):
        ask("member", "add", "next_hops", number, f'next_hop(port:0, address:"{address(number)}")')
    ask("group", "set", "next_hops", 5, "1", "2:3")
    assert ask("group", "list", "next_hops").stdout == "5: 1:1 2:3\n"
    listed = json.loads(ask("member", "list", "next_hops", "--json").stdout)
    assert listed["members"][0] == {"id": 1, "action": "Router.next_hop(port:0x0, address:0x20000000101)"}
    ask("table", "add", "routes hdr.ipv4.destination:10.0.0.0/8 group(id:5)")
    assert set(chosen(wire, range(64))) == {1, 2}
    counted = json.loads(ask("counter", "read", "route_hits", "--json").stdout)
    assert [(cell["packets"], "group(id:5)" in cell["entry"]) for cell in counted["cells"]] == [(64, True)]
    ask("member", "modify", "next_hops", 1, f'next_hop(port:0, address:"{address(9)}")')
    assert set(chosen(wire, range(64))) == {9, 2}
    dump = tmp_path / "entries.txt"
    ask("table", "dump", dump)
    ask("table", "delete", "routes hdr.ipv4.destination:10.0.0.0/8")
    lines = [line for line in dump.read_text().splitlines() if "services" not in line]
    dump.write_text("\n".join(lines))
    ask("table", "load", dump)
    assert set(chosen(wire, range(64))) == {9, 2}
    for arguments, named in [
        (("member", "delete", "next_hops", 1), "group 5"),
        (("member", "add", "next_hops", 1, "drop()"), "already exists"),
        (("member", "add", "next_hops", 3, "send(port:1)"), "send"),
        (("group", "set", "outlets", 1, 1), "not an action selector"),
        (("group", "set", "next_hops", 5, "1:65"), "64"),
        (("group", "delete", "next_hops", 5), "entries use"),
        (("table", "add", "routes hdr.ipv4.destination:11.0.0.0/8 member(id:77)"), "no member 77"),
        (("value-set", "set", "like_ipv4", "1", "2", "3", "4", "5"), "room for 4"),
        (("value-set", "set", "like_ipv4", "0x12345"), "16 bits"),
    ]:
        refused = ask(*arguments, check=False)
        assert refused.returncode == 1 and named in refused.stderr, (arguments, refused.stderr)
    assert set(chosen(wire, range(64))) == {9, 2}, "nothing was half done"
