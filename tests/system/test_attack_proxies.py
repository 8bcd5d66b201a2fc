"""A router with two listeners, one behind a proxy. A remote client floods commands through the proxy and never gets authority, while local
applications are served on the other listener.
"""

import itertools
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from attack_arena import ATTACKER
from attack_limits import COMMAND_SECONDS, PROXY_SECONDS, PROXY_SHORT_SECONDS, SHORT_COMMAND_SECONDS
from packets import command, interest, register, status
from test_proxies import SHOWN, STATUS, Tcp, WebSocket, configured, reverse_proxy  # noqa: F401

# Empty: the short form. "every" or "proxies": the long form.
CHOICE = os.environ.get("ATTACK", "")
SECONDS = PROXY_SECONDS if CHOICE else PROXY_SHORT_SECONDS
LIMIT = COMMAND_SECONDS if CHOICE else SHORT_COMMAND_SECONDS
RATE = 5000
if CHOICE not in ("", "every", "proxies"):
    pytest.skip("another attack was chosen", allow_module_level=True)

pytestmark = pytest.mark.skipif(not Path(ATTACKER).exists(), reason="cargo build -p namehop-traffic --example attack")


class TcpFlood:
    """Floods registrations through a proxy that adds no header fields."""

    def __init__(self, port, face):
        options = {"to": f"127.0.0.1:{port}", "via": "tcp", "rate": RATE, "seconds": SECONDS, "face": face}
        arguments = [f"{key}={value}" for key, value in options.items()]
        command = ["nice", "-n", "10", ATTACKER, "stranger-commands", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end(self):
        return json.loads(self.process.communicate(timeout=SECONDS + 60)[0].splitlines()[-1])["packets"]


class WebSocketFlood:
    """Floods registrations, as a local application would send them, and dataset requests, through a proxy that adds its header fields."""

    def __init__(self, port, face):
        kinds = [command("rib", "register", register(f"/attacker/web/{number}", face)) for number in range(500)]
        self.sent, self.packets, until = 0, itertools.cycle([*kinds, STATUS]), time.monotonic() + SECONDS
        self.client = WebSocket(port)
        assert self.client.status == 101

        def flood():
            while time.monotonic() < until:
                self.client.send(next(self.packets))
                self.sent += 1

        self.thread = threading.Thread(target=flood)
        self.thread.start()

    def end(self):
        self.thread.join(SECONDS + 60)
        self.client.close()
        return self.sent


# Settings of the listener behind the proxy, name of the listener, scheme of its faces, header fields that the proxy sets, the flood, and
# the client on the other listener.
CASES = {
    "tcp": ({"tcp": "local = false"}, "tcp", "tcp4", None, TcpFlood, lambda router: WebSocket(router.ws)),
    "websocket": ({"websocket": "local = true"}, "ws", "wsclient", SHOWN["nginx"], WebSocketFlood, lambda router: Tcp(router.tcp)),
}


@pytest.mark.parametrize("case", CASES)
def test_commands_through_a_proxy_have_no_effect(configured, case):  # noqa: F811
    settings, listener, scheme, fields, flood, local_client = CASES[case]
    router = configured(**settings)
    local = local_client(router)
    taken = router.json("face", "list")[-1]["face_id"]
    with reverse_proxy(getattr(router, listener), fields) as port:
        attacker = flood(port, taken)
        until, slowest, count, scopes = time.monotonic() + SECONDS, 0, 0, set()
        while time.monotonic() < until:
            began = time.monotonic()
            # An application registers its prefix, and the operator runs a command.
            local.send(command("rib", "register", register(f"/local/{count}", 0)))
            assert status(local.receive())[0] == 200
            router.namehop("route", "add", f"/operator/{count}", "udp4://127.0.0.1:9", timeout=60)
            local.send(interest("/nobody/here", nonce=os.urandom(4)))
            assert local.receive()
            slowest = max(slowest, time.monotonic() - began)
            scopes |= {face["scope"] for face in router.json("face", "list") if face["remote_uri"].startswith(scheme)}
            count += 1
            time.sleep(0.05)
        sent = attacker.end()
    violations = router.json("status")["drops"]["engine"]["scope-violation"]
    rounds = f"{count} rounds of applications, the slowest {slowest:.2f} s"
    print(f"\n== flooded through a proxy before {case}: {sent} commands, {violations} dropped as scope-violation; {rounds}")
    assert sent > 100 * SECONDS and violations > 100 and count > 2 and slowest < LIMIT, rounds
    assert scopes == {"non-local"}
    prefixes = {route["prefix"] for route in router.json("route", "list")}
    assert not [prefix for prefix in prefixes if prefix.startswith("/attacker")], prefixes
    assert {f"/{who}/{number}" for who in ("local", "operator") for number in range(count)} <= prefixes
    local.close()
