"""P4Runtime: atomic batches, controller roles, truncated clones, metadata of default actions."""

import contextlib
import threading

import grpc
import p4runtime_sh.shell as sh
import pytest
from conftest import PATIENCE, ROOT, run_namehop, wait_until
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4data_pb2
from p4.v1 import p4runtime_pb2 as p4
from p4runtime_sh.p4runtime import P4RuntimeClient
from port_links import needs_root
from test_p4_runtime import FRAME, OTHER, STATION, Switch, Wire, refusal, reply, station

pytestmark = needs_root

EVERYTHING = (ROOT / "p4/runtime/programs/everything.p4").read_text()
INSERT, MODIFY, DELETE = p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE
CONTINUE, ROLLBACK, ATOMIC = p4.WriteRequest.CONTINUE_ON_ERROR, p4.WriteRequest.ROLLBACK_ON_ERROR, p4.WriteRequest.DATAPLANE_ATOMIC
KIND = b"\x88\xb5"


@pytest.fixture
def wire():
    with Wire() as wire:
        yield wire


def ids():
    """Returns the ids of all p4info objects, by the last part of their names."""
    info = sh.context.p4info
    lists = [info.tables, info.actions, info.action_profiles, info.counters, info.direct_counters, info.meters, info.direct_meters]
    lists += [info.registers, info.value_sets, info.digests]
    return {thing.preamble.name.split(".")[-1]: thing.preamble.id for things in lists for thing in things}


def write(updates, atomicity=CONTINUE):
    """Writes updates, each a type and the fields of its entity. Returns the code of each update, or None if all succeeded."""
    request = p4.WriteRequest(device_id=7, atomicity=atomicity)
    request.election_id.low = 5
    request.updates.extend(p4.Update(type=kind, entity=p4.Entity(**entity)) for kind, entity in updates)
    try:
        sh.client.stub.Write(request, timeout=PATIENCE)
    except grpc.RpcError as error:
        (details,) = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
        codes = []
        for detail in status_pb2.Status.FromString(details).details:
            fate = p4.Error()
            detail.Unpack(fate)
            codes.append(code_pb2.Code.Name(fate.canonical_code))
        return codes


def read(**entity):
    request = p4.ReadRequest(device_id=7, entities=[p4.Entity(**entity)])
    return [found for answer in sh.client.stub.Read(request, timeout=PATIENCE) for found in answer.entities]


def everything():
    """Reads every kind of entity."""
    measured = {"counter_data": p4.CounterData(), "meter_config": p4.MeterConfig()}
    replication = p4.PacketReplicationEngineEntry
    asked = [
        {"table_entry": p4.TableEntry(**measured)},
        {"table_entry": p4.TableEntry(is_default_action=True)},
        {"action_profile_member": p4.ActionProfileMember()},
        {"action_profile_group": p4.ActionProfileGroup()},
        {"counter_entry": p4.CounterEntry()},
        {"meter_entry": p4.MeterEntry()},
        {"register_entry": p4.RegisterEntry()},
        {"value_set_entry": p4.ValueSetEntry()},
        {"packet_replication_engine_entry": replication(multicast_group_entry=p4.MulticastGroupEntry())},
        {"packet_replication_engine_entry": replication(clone_session_entry=p4.CloneSessionEntry())},
        {"digest_entry": p4.DigestEntry()},
    ]
    return sorted(str(found) for entity in asked for found in read(**entity))


def entry(table, match=(), **rest):
    return {"table_entry": p4.TableEntry(table_id=ids()[table], match=match, **rest)}


def lpm(value):
    return [p4.FieldMatch(field_id=1, lpm=p4.FieldMatch.LPM(value=bytes([value, 0, 0, 0]), prefix_len=8))]


def exact(value):
    return [p4.FieldMatch(field_id=1, exact=p4.FieldMatch.Exact(value=value))]


def action(name, *values):
    params = [p4.Action.Param(param_id=place, value=value) for place, value in enumerate(values, 1)]
    return p4.Action(action_id=ids()[name], params=params)


def member(profile, number, action=None):
    return {"action_profile_member": p4.ActionProfileMember(action_profile_id=ids()[profile], member_id=number, action=action)}


def group(number, *weights):
    members = [p4.ActionProfileGroup.Member(member_id=member, weight=weight) for member, weight in weights]
    return {"action_profile_group": p4.ActionProfileGroup(action_profile_id=ids()["next_hops"], group_id=number, members=members)}


def copies(*ports):
    return [p4.Replica(egress_port=port, instance=number) for number, port in enumerate(ports)]


def multicast(number, *ports):
    made = p4.MulticastGroupEntry(multicast_group_id=number, replicas=copies(*ports))
    return {"packet_replication_engine_entry": p4.PacketReplicationEngineEntry(multicast_group_entry=made)}


def session(number, *ports, **rest):
    made = p4.CloneSessionEntry(session_id=number, replicas=copies(*ports), **rest)
    return {"packet_replication_engine_entry": p4.PacketReplicationEngineEntry(clone_session_entry=made)}


def value_set(*kinds):
    members = [p4.ValueSetMember(match=exact(kind)) for kind in kinds]
    return {"value_set_entry": p4.ValueSetEntry(value_set_id=ids()["like_ipv4"], members=members)}


def rates(number):
    return p4.MeterConfig(cir=number, cburst=number, pir=2 * number, pburst=2 * number)


def counted(number):
    return p4.CounterData(packet_count=number, byte_count=64 * number)


def cells(number):
    """Yields one indexed cell of each kind."""
    index = p4.Index(index=3)
    data = p4data_pb2.P4Data(bitstring=bytes([number]))
    yield {"counter_entry": p4.CounterEntry(counter_id=ids()["received"], index=index, data=counted(number))}
    yield {"meter_entry": p4.MeterEntry(meter_id=ids()["limits"], index=index, config=rates(number))}
    yield {"register_entry": p4.RegisterEntry(register_id=ids()["last_source"], index=index, data=data)}


def rule(**rest):
    source = p4.FieldMatch(field_id=1, ternary=p4.FieldMatch.Ternary(value=b"\x0a\0\0\0", mask=b"\xff\0\0\0"))
    return entry("rules", [source], priority=5, **rest)


def reports(size):
    config = p4.DigestEntry.Config(max_list_size=size, max_timeout_ns=10**9)
    return {"digest_entry": p4.DigestEntry(digest_id=ids()["seen_t"], config=config)}


@pytest.mark.parametrize("atomicity", [ROLLBACK, ATOMIC], ids=["rollback", "atomic"])
def test_a_batch_with_a_wrong_update_changes_nothing(tmp_path, wire, atomicity):
    with Switch(tmp_path, wire, EVERYTHING) as switch, switch.shell():
        address = bytes(5) + b"\x07"
        limit, next_hop = action("limit"), action("next_hop", b"\1", address)
        to_group, to_member = p4.TableAction(action_profile_group_id=7), p4.TableAction(action_profile_member_id=1)
        first = [
            (MODIFY, value_set(KIND)),
            (INSERT, member("next_hops", 1, next_hop)),
            (INSERT, member("next_hops", 2, next_hop)),
            (INSERT, member("outlets", 5, action("send", b"\0"))),
            (INSERT, group(7, (1, 1), (2, 3))),
            (INSERT, entry("routes", lpm(10), action=to_group, metadata=b"first", counter_data=counted(4))),
            (INSERT, entry("routes", lpm(11), action=to_member, counter_data=counted(5))),
            (INSERT, entry("stations", exact(address), action=p4.TableAction(action_profile_member_id=5), idle_timeout_ns=60 * 10**9)),
            (INSERT, rule(action=p4.TableAction(action=limit), meter_config=rates(6), counter_data=counted(7))),
            (MODIFY, entry("rules", action=p4.TableAction(action=limit), is_default_action=True, metadata=b"default")),
            *((MODIFY, cell) for cell in cells(8)),
            (INSERT, multicast(4, 0, 1)),
            (INSERT, session(9, 0, packet_length_bytes=100)),
            (INSERT, reports(10)),
        ]
        assert write(first) is None
        before = everything()
        assert len(before) > len(first)
        direct = rule()["table_entry"]
        second = [
            (MODIFY, value_set(KIND, b"\x88\xb6")),
            (INSERT, member("next_hops", 3, next_hop)),
            (MODIFY, member("next_hops", 1, action("drop"))),
            (MODIFY, group(7, (3, 2))),
            (INSERT, group(8, (3, 1))),
            (MODIFY, entry("routes", lpm(10), action=p4.TableAction(action_profile_member_id=3), metadata=b"second", counter_data=counted(0))),
            (DELETE, entry("routes", lpm(11))),
            (INSERT, entry("routes", lpm(12), action=p4.TableAction(action_profile_group_id=8))),
            (DELETE, entry("stations", exact(address))),
            (DELETE, member("outlets", 5)),
            (MODIFY, rule(action=p4.TableAction(action=action("deny")), meter_config=rates(60), counter_data=counted(70))),
            (MODIFY, {"direct_counter_entry": p4.DirectCounterEntry(table_entry=direct, data=counted(71))}),
            (MODIFY, {"direct_meter_entry": p4.DirectMeterEntry(table_entry=direct, config=rates(61))}),
            (MODIFY, entry("rules", action=p4.TableAction(action=action("deny")), is_default_action=True)),
            *((MODIFY, cell) for cell in cells(80)),
            (MODIFY, multicast(4, 1)),
            (INSERT, multicast(5, 0)),
            (DELETE, session(9)),
            (INSERT, session(10, 0)),
            (DELETE, reports(0)),
        ]
        wrong = [*second, (INSERT, entry("routes", lpm(12), action=to_member)), (INSERT, multicast(6, 0))]
        fates = write(wrong, atomicity)
        assert fates == ["ABORTED"] * len(second) + ["ALREADY_EXISTS", "ABORTED"]
        assert everything() == before
        # An atomic batch must name single cells.
        whole = {"counter_entry": p4.CounterEntry(counter_id=ids()["received"])}
        assert write([second[1], (MODIFY, whole)], atomicity) == ["ABORTED", "UNIMPLEMENTED"]
        assert everything() == before
        # Without the wrong update the whole batch succeeds. A batch without atomicity may succeed in part.
        assert write(second, atomicity) is None
        after = everything()
        assert after != before and not any("first" in found for found in after)
        assert write([(DELETE, multicast(5)), (DELETE, multicast(5))]) == ["OK", "NOT_FOUND"]


@pytest.mark.parametrize("atomicity", [ATOMIC, CONTINUE], ids=["atomic", "one-by-one"])
def test_packets_see_atomic_batches_as_a_whole(tmp_path, wire, atomicity):
    """One of the two tables always drops the frames, so frames leave only between the updates of a batch that is not atomic."""
    with Switch(tmp_path, wire) as switch:
        with switch.shell():
            mac = bytes.fromhex(STATION.replace(":", ""))
            fillers = [exact(bytes([2, 0, 0, 1, 0, number])) for number in range(60)]
            send, drop = (p4.TableAction(action=made) for made in (action("send", b"\0"), action("drop")))
            to_the_second = [
                (DELETE, entry("filter", priority=1)),
                *((INSERT, entry("stations", filler, action=drop)) for filler in fillers),
                (MODIFY, entry("stations", exact(mac), action=drop)),
            ]
            to_the_first = [
                (MODIFY, entry("stations", exact(mac), action=send)),
                *((DELETE, entry("stations", filler)) for filler in fillers),
                (INSERT, entry("filter", priority=1, action=drop)),
            ]
            assert write([(INSERT, entry("stations", exact(mac), action=drop)), *to_the_first[:1], to_the_first[-1]]) is None
            is_over = threading.Event()

            def flood():
                while not is_over.is_set():
                    with contextlib.suppress(OSError):
                        wire.socket.send(FRAME)

            def received():
                counter = sh.CounterEntry("received")
                counter.index = 0
                return next(iter(counter.read())).packet_count

            thread = threading.Thread(target=flood)
            thread.start()
            try:
                wait_until(lambda: received() > 1000)
                began = received()
                for _ in range(100):
                    assert write(to_the_second, atomicity) is None
                    assert write(to_the_first, atomicity) is None
                seen = received() - began
            finally:
                is_over.set()
                thread.join()
        sent = switch.end()["ports"][0]["sent_packets"]
        print(f"{sent} of {seen} frames left")
        assert seen > 1000 and (sent > 0) == (atomicity == CONTINUE)


def test_each_role_has_its_primary_controller(tmp_path, wire):
    with Switch(tmp_path, wire) as switch, switch.shell(), contextlib.ExitStack() as stack:
        def controller(election_id, role):
            client = P4RuntimeClient(7, switch.address, (0, election_id), role)
            stack.callback(client.tear_down)
            return client

        # The election id of the default role may be used again in another role.
        routing = controller(5, "routing")
        backup = controller(4, "routing")
        update = p4.Update(type=INSERT, entity=p4.Entity(**entry("stations", exact(b"\2\0\0\0\0\1"))))
        update.entity.table_entry.action.action.CopyFrom(action("to_controller"))
        routing.write_update(update)
        with pytest.raises(grpc.RpcError) as refused:
            backup.write_update(update)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
        # The primary controller of each role may write, and sees the other's entries.
        assert "ALREADY_EXISTS" in refusal(station("to_controller").insert)
        station("drop", OTHER).insert()
        wire.socket.send(FRAME)
        assert reply().packet.payload == FRAME
        assert routing.get_stream_packet("packet", timeout=PATIENCE).packet.payload == FRAME
        assert backup.get_stream_packet("packet", timeout=0.2) is None
        out = p4.StreamMessageRequest()
        out.packet.payload = FRAME
        for number in (1, 2):
            out.packet.metadata.add(metadata_id=number, value=b"\0")
        routing.stream_out_q.put(out)
        assert wire.receive() == FRAME
        # A read names an existing role, or none.
        request = p4.ReadRequest(device_id=7, role="routing", entities=[p4.Entity(table_entry=p4.TableEntry())])
        assert sum(len(answer.entities) for answer in sh.client.stub.Read(request)) == 2
        request.role = "nobody"
        with pytest.raises(grpc.RpcError) as refused:
            list(sh.client.stub.Read(request))
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_copies_of_a_session_have_a_bounded_length(tmp_path, wire):
    with Switch(tmp_path, wire) as switch, switch.shell():
        station("mirror", session="9").insert()
        assert write([(INSERT, session(9, 0, packet_length_bytes=40))]) is None
        wire.socket.send(FRAME)
        assert wire.receive() == FRAME[:40]
        (found,) = read(**session(9))
        assert found.packet_replication_engine_entry.clone_session_entry.packet_length_bytes == 40
        # A length above that of the frame, and no limit.
        for length in (2000, 0):
            assert write([(MODIFY, session(9, 0, packet_length_bytes=length))]) is None
            wire.socket.send(FRAME)
            assert wire.receive() == FRAME
        assert write([(MODIFY, session(9, 0, packet_length_bytes=-1))]) == ["INVALID_ARGUMENT"]
        assert write([(MODIFY, session(9, 0, class_of_service=1))]) == ["UNIMPLEMENTED"]
        run_namehop("p4", "mirror", "9", "--port", "0", "--length", "30", "--control", switch.socket)
        wire.socket.send(FRAME)
        assert wire.receive() == FRAME[:30]
        # A failed batch also leaves alone what was set at the control socket.
        assert write([(INSERT, session(9, 0)), (DELETE, session(8))], ROLLBACK) == ["ABORTED", "NOT_FOUND"]
        wire.socket.send(FRAME)
        assert wire.receive() == FRAME[:30]


def test_groups_have_metadata_and_what_is_not_kept_is_refused_by_name(tmp_path, wire):
    with Switch(tmp_path, wire) as switch, switch.shell():
        of_group = multicast(5, 0)
        of_group["packet_replication_engine_entry"].multicast_group_entry.metadata = b"mine"
        assert write([(INSERT, of_group)]) is None
        # A change at the control socket keeps the controller's metadata.
        run_namehop("p4", "multicast", "5", "2:0", "--control", switch.socket)
        (found,) = read(**of_group)
        found = found.packet_replication_engine_entry.multicast_group_entry
        assert (found.metadata, [replica.instance for replica in found.replicas]) == (b"mine", [2])
        colors = entry("stations", exact(b"\7"), action=p4.TableAction(action=action("drop")))
        colors["table_entry"].meter_counter_data.SetInParent()
        assert write([(INSERT, colors)]) == ["UNIMPLEMENTED"]
        assert read(**entry("stations", exact(b"\7"))) == []


def test_default_actions_have_metadata(tmp_path, wire):
    with Switch(tmp_path, wire) as switch, switch.shell():
        drop = p4.TableAction(action=action("drop"))
        assert write([(MODIFY, entry("stations", is_default_action=True, action=drop, metadata=b"mine"))]) is None
        assert write([(INSERT, entry("stations", exact(b"\7"), action=drop, metadata=b"yours"))]) is None
        (found,) = read(**entry("stations", is_default_action=True))
        assert found.table_entry.metadata == b"mine"
        # A read with metadata returns only entries with this metadata.
        assert read(**entry("stations", is_default_action=True, metadata=b"yours")) == []
        assert [found.table_entry.metadata for found in read(**entry("stations", metadata=b"yours"))] == [b"yours"]
        assert read(**entry("stations", metadata=b"mine")) == []
        # The older `controller_metadata` field, a number.
        assert write([(MODIFY, entry("stations", exact(b"\7"), action=drop, metadata=b"yours", controller_metadata=1 << 63))]) is None
        (found,) = read(**entry("stations", controller_metadata=1 << 63))
        assert (found.table_entry.metadata, found.table_entry.controller_metadata) == (b"yours", 1 << 63)
        assert read(**entry("stations", controller_metadata=1)) == []
        # Resetting the default action to that of the program removes the metadata.
        assert write([(MODIFY, entry("stations", is_default_action=True))]) is None
        (found,) = read(**entry("stations", is_default_action=True))
        assert found.table_entry.metadata == b""
