"""Floods of connections and requests on P4Runtime: a connected controller is still served, and a new one can connect.

`make attack-test` runs each attack longer than `make test` does.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import grpc
import p4runtime_sh.shell as sh
import pytest
from attack_limits import P4_ANSWER_SECONDS, P4_ENTRY_SECONDS, P4_SECONDS, P4_SHORT_SECONDS
from attack_p4runtime import ATTACKS, channel
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from port_links import needs_root
from test_p4_runtime import FRAME, Switch, Wire, station

pytestmark = needs_root

# Empty: the short form. "every" or "p4runtime": the long form of all attacks.
CHOICE = os.environ.get("ATTACK", "")
SECONDS = P4_SECONDS if CHOICE else P4_SHORT_SECONDS
if CHOICE not in ("", "every", "p4runtime"):
    pytest.skip("another attack was chosen", allow_module_level=True)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    with Wire() as wire, Switch(tmp_path_factory.mktemp("switch"), wire) as switch:
        yield switch, wire
        switch.end()


def serves(wire):
    """Returns the seconds that the connected controller needs for a write, a read and a packet-out."""
    began = time.monotonic()
    station("send", port="0").modify()
    assert len(list(sh.TableEntry("stations").read())) == 1
    sh.PacketOut(payload=FRAME, port="0", rest="0").send()
    assert wire.receive() == FRAME
    return time.monotonic() - began


def enters(address, number):
    """Returns the seconds until a new controller has its arbitration and a response. It retries, as controllers do."""
    began, request = time.monotonic(), p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = 7
    request.arbitration.election_id.low = 1 + number % 3
    while True:
        with channel(address) as own:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(own)
            try:
                assert next(stub.StreamChannel(iter([request]), timeout=P4_ENTRY_SECONDS)).HasField("arbitration")
                stub.Capabilities(p4runtime_pb2.CapabilitiesRequest(), timeout=P4_ENTRY_SECONDS)
                return time.monotonic() - began
            except grpc.RpcError as error:
                assert time.monotonic() - began < P4_ENTRY_SECONDS, error


@pytest.mark.parametrize("attack", ATTACKS)
def test_controllers_under_attack(attacked, attack):
    switch, wire = attacked
    with switch.shell():
        station("drop").insert()
        program = Path(__file__).parent / "attack_p4runtime.py"
        command = ["nice", "-n", "10", sys.executable, str(program), attack, switch.address, str(SECONDS + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
            time.sleep(1)
            served, entered, until = [], [], time.monotonic() + SECONDS
            while time.monotonic() < until:
                served.append(serves(wire))
                entered.append(enters(switch.address, len(entered)))
                time.sleep(0.1)
            sent = json.loads(attacker.communicate(timeout=60)[0])
        summary = f"{len(served)} rounds, served within {max(served):.2f} s, new controllers within {max(entered):.2f} s"
        print(f"\n== P4Runtime attacked by {attack}: {sent}; {summary}")
        assert attacker.returncode == 0 and sum(sent.values()) > 20, sent
        assert max(served) < P4_ANSWER_SECONDS and max(entered) < P4_ENTRY_SECONDS, summary
        station("send", port="0").delete()
