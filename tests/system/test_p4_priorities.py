"""P4Runtime with a program in which the smallest priority wins: p4runtime-shell, an independent controller, reads, modifies and deletes
such entries. Entries marked const cannot be changed.
"""

import p4runtime_sh.shell as sh
import pytest
from conftest import PATIENCE
from port_links import needs_root
from test_p4_runtime import FORWARDING, FRAME, Switch, Wire, refusal, station

pytestmark = needs_root

# P4Runtime reports the program's priority N as LARGEST - N.
LARGEST = 2**31 - 1

DEFAULT = "default_action = NoAction();"
ENTRIES = """
        largest_priority_wins = false;
        entries = {
            priority = 10: (0x020000000000 &&& 0xff0000000000, _, _): drop();
            const priority = 20: (_, 0x88b5 .. 0x88b6, _): NoAction();
        }
"""


@pytest.fixture
def switch(tmp_path):
    with Wire() as wire, Switch(tmp_path, wire, FORWARDING.replace(DEFAULT, DEFAULT + ENTRIES)) as switch:
        switch.wire = wire
        yield switch


def passes(switch, number):
    """True if a frame comes back. A second frame, which always comes back, marks the end."""
    frame, marker = FRAME + bytes([number]), FRAME[:6] + b"\4" + FRAME[7:] + bytes([number])
    switch.wire.socket.send(frame)
    switch.wire.socket.send(marker)
    first = switch.wire.receive()
    if first == frame:
        assert switch.wire.receive() == marker
    return first == frame


def rule(action, priority):
    entry = sh.TableEntry("filter")(action=action, priority=priority)
    entry.match["hdr.ethernet.source"] = "02:00:00:00:00:00&&&ff:00:00:00:00:00"
    return entry


def test_entries_of_the_smallest_priority_are_told_apart(switch):
    switch.wire.socket.settimeout(PATIENCE)
    with switch.shell():
        station("send", port="0").insert()
        own, kept = sorted(sh.TableEntry("filter").read(), key=lambda entry: -entry.priority)
        assert (own.priority, own.action.action_name) == (LARGEST - 10, "Forward.drop")
        assert (kept.priority, kept.action.action_name) == (LARGEST - 20, "NoAction")
        assert not passes(switch, 1)
        # An entry between the two has no effect; an entry before the first one wins.
        between, before = rule("NoAction", LARGEST - 15), rule("NoAction", LARGEST - 9)
        between.insert()
        assert not passes(switch, 2)
        before.insert()
        assert passes(switch, 3)
        assert "ALREADY_EXISTS" in refusal(before.insert)
        (read,) = before.read()
        assert (read.priority, read.action.action_name) == (LARGEST - 9, "NoAction")
        before.action = sh.Action("drop")
        before.modify()
        assert not passes(switch, 4)
        before.delete()
        rule("drop", LARGEST - 10).delete()
        assert passes(switch, 5)
        between.delete()
        (left,) = sh.TableEntry("filter").read()
        assert left.priority == LARGEST - 20
        for change in (left.modify, left.delete):
            assert "PERMISSION_DENIED" in refusal(change)
        assert len(list(sh.TableEntry("filter").read())) == 1
        # Setting the pipeline again restores both entries.
        sh.client.set_fwd_pipe_config(switch.p4info, switch.program)
        assert {entry.priority for entry in sh.TableEntry("filter").read()} == {LARGEST - 10, LARGEST - 20}
