"""Authorization: signed commands from remote hosts, commands limited to certain keys, and prefix announcements.

NDNts makes the keys, certificates, signed commands and announcements, unless a test says otherwise.
"""

import json
import re
import socket
import time
from base64 import b64decode
from types import SimpleNamespace

import pytest
from clock import Clock
from conftest import PATIENCE, Clients, wait_until
from ndn.app_support.nfd_mgmt import make_command
from ndn.encoding import Component, InterestParam, Name, SignatureInfo, make_interest
from ndn.security import Sha256WithEcdsaSigner
from packets import elements, status, tlv


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Stems of key files: an operator, a member with a certificate issued by the operator, and a stranger."""
    folder = tmp_path_factory.mktemp("keys")
    maker = Clients(folder)
    (folder / "issued").mkdir()
    stems = SimpleNamespace(
        operator=folder / "operator", member=folder / "issued/member", stranger=folder / "stranger", issued=folder / "issued"
    )
    for identity, stem, *issuer in [
        ("/net/operator", stems.operator),
        ("/net/member", stems.member, stems.operator),
        ("/elsewhere/stranger", stems.stranger),
    ]:
        (made,) = maker.run("ndnts", "key", identity, stem, *issuer)
        setattr(stems, f"{stem.name}_key", Name.from_str(made["key"]))
    return stems


def trust(section, keys, prefixes):
    anchor = f'{{ certificate = "{keys.operator}.ndncert", prefixes = {json.dumps(prefixes)} }}'
    return f'[management.{section}]\nanchors = [{anchor}]\ncertificates = "{keys.issued}"\n'


def localhop(keys, prefixes=("/",)):
    return trust("localhop", keys, prefixes)


def announcements(keys, prefixes=("/",)):
    return trust("prefix_announcements", keys, prefixes)


def only_the_operator_routes(keys):
    return f'[[management.authorizations]]\ncertificate = "{keys.operator}.ndncert"\nmodules = ["rib"]\n'


def routes(router, prefix):
    return [route for route in router.json("route", "list") if route["prefix"] == prefix]


def codes(answers):
    return [answer["code"] for answer in answers]


REGISTER = ("rib/register", '{"name": "/a"}')
# The same command, without waiting for a response.
UNHEARD = ("?rib/register", '{"name": "/a"}')


@pytest.mark.parametrize("transport, signer", [("udp", "member"), ("tcp", "operator")])
def test_ndnts_registers_from_another_computer(make_router, clients, keys, transport, signer):
    """A local consumer reaches a remote producer over UDP or TCP. On UDP, NDNts chooses the command prefix itself."""
    router = make_router(localhop(keys))
    zone = "default" if transport == "udp" else "localhop"
    clients.start("ndnts", "produce", router.uri(transport), "/remote/thing", zone, getattr(keys, signer))
    (route,) = wait_until(lambda: routes(router, "/remote/thing"), what="registered")
    assert (route["origin"], route["flags"]) == ("client", "capture")
    (answer,) = clients.run("ndnts", "consume", router.unix_uri, "/remote/thing/1")
    assert answer["result"] == "data"


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_untrusted_commands_from_another_computer_are_refused(make_router, clients, keys, transport):
    router = make_router(localhop(keys))
    uri = router.uri(transport)
    assert codes(clients.run("ndnts", "command", uri, "localhop", keys.stranger, *REGISTER)) == [403]
    assert codes(clients.run("ndnts", "command", uri, "localhop", "digest", *REGISTER, "?unsigned", '{"name": "/a"}')) == [403, None]
    assert not routes(router, "/a")


NAMES = ["/", "/net", "/net/member", "/net/member/x", "/net/operator/x", "/net/membe", "/bank", "/localhop", "/localhop/x", "/localhost/x"]


@pytest.mark.parametrize("prefixes, more", [((), []), (("/bank",), ["/bank"]), (("/",), NAMES[:7])])
def test_a_key_registers_names_under_its_identity_and_those_that_its_anchor_allows(make_router, clients, keys, prefixes, more):
    router = make_router(localhop(keys, prefixes))
    steps = [part for name in NAMES for part in ("rib/register", json.dumps({"name": name}))]
    answers = clients.run("ndnts", "command", router.udp_uri, "localhop", keys.member, *steps)
    allowed = {"/net/member", "/net/member/x", *more}
    assert codes(answers) == [200 if name in allowed else 403 for name in NAMES], answers
    registered = {route["prefix"] for route in router.json("route", "list")}
    assert {name for name in NAMES if name in registered} == allowed
    assert all("/net/member" in answer["text"] for answer in answers[4:7] if answer["code"] == 403), answers


def test_a_key_announces_names_under_its_identity_only(make_router, clients, keys):
    """This holds for announcements by command and for those learned from Data. A neighbour cannot register another key's announcement for
    itself either.
    """
    strict, open_ = announcements(keys, ()), announcements(keys, ["/announced"])
    for trusted, expected in [(localhop(keys) + strict, 403), (localhop(keys) + open_, 200), (localhop(keys, ()) + open_, 403)]:
        router = make_router(trusted)
        answers = clients.run("ndnts", "command", router.udp_uri, "localhop", keys.operator, "announce", keys.member)
        assert codes(answers) == [expected], answers
        assert len(routes(router, "/announced")) == (expected == 200)


def test_only_routes_can_be_commanded_from_another_computer(make_router, clients, keys):
    router = make_router(localhop(keys) + announcements(keys))
    steps = ["?faces/create", '{"uri": "udp4://127.0.0.1:9"}', "announce", keys.stranger, "announce", keys.member, *REGISTER]
    assert codes(clients.run("ndnts", "command", router.udp_uri, "localhop", keys.operator, *steps)) == [None, 403, 200, 200]
    assert [route["origin"] for route in routes(router, "/announced")] == ["prefixann"]
    # Commands under /localhost from a remote host are ignored, even with a trusted signature.
    assert codes(clients.run("ndnts", "command", router.udp_uri, "localhost", keys.operator, *UNHEARD)) == [None]


def test_without_trust_anchors_other_computers_command_nothing(router, clients, keys):
    assert codes(clients.run("ndnts", "command", router.udp_uri, "localhop", keys.operator, *UNHEARD)) == [None]
    assert not routes(router, "/a")


def test_a_replayed_command_is_refused(make_router, clients, keys):
    """The router checks the command at once: a cached response would be an old 200."""
    router = make_router(localhop(keys))
    steps = [*REGISTER, "rib/unregister", '{"name": "/a", "origin": 0}', "replay", "0"]
    answers = clients.run("ndnts", "command", router.udp_uri, "localhop", keys.operator, *steps)
    assert codes(answers) == [200, 200, 403], answers
    assert not routes(router, "/a"), "the replayed registration has no effect"
    assert codes(clients.run("ndnts", "command", router.udp_uri, "localhop", keys.operator, *REGISTER)) == [200]


def older_command(stem, key_name, ahead_s=0, **parameters):
    """Encodes a python-ndn command in the older signed form, which puts everything into name components. The clock of the signer is
    `ahead_s` seconds ahead.
    """
    pem = re.sub(r"-----[^-]+-----|\s", "", open(f"{stem}.pem").read())
    signer = Sha256WithEcdsaSigner(key_name, b64decode(pem))
    # python-ndn signs with a digest only, so replace its two signature components.
    command = [bytes(component) for component in make_command("rib", "register", **parameters)[:-2]]
    command[0] = Component.from_str("localhop")
    command[5] = Component.from_bytes(int((time.time() + ahead_s) * 1000).to_bytes(8, "big"))
    info = SignatureInfo()
    signer.write_signature_info(info)
    command.append(Component.from_bytes(tlv(0x16, info.encode())))
    value = bytearray(signer.get_signature_value_size())
    length = signer.write_signature_value(memoryview(value), [memoryview(part) for part in command])
    command.append(Component.from_bytes(tlv(0x17, bytes(value[:length]))))
    return bytes(make_interest(command, InterestParam(lifetime=60_000)))


def test_the_older_form_of_commands(make_router, keys):
    router = make_router(localhop(keys))
    for stem, expected in [(keys.stranger, b"\x66\x02\x01\x93"), (keys.operator, b"\x66\x01\xc8")]:
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.settimeout(PATIENCE)
        peer.connect(("127.0.0.1", router.udp))
        # Both commands claim the operator's key.
        peer.send(older_command(stem, keys.operator_key, name="/older", flags=1))
        assert expected in peer.recv(9000)
        assert len(routes(router, "/older")) == (stem == keys.operator)


class Peer:
    """A neighbour on UDP that sends commands and reads the responses."""

    def __init__(self, router):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", router.udp))

    def answer(self, command):
        """Sends a command and returns status code and text of the response."""
        self.socket.send(command)
        frame = self.socket.recv(9000)
        return status(elements(elements(frame)[0x64])[0x50] if frame[0] == 0x64 else frame)


def registrations(keys, *names, **options):
    """Encodes registrations, signed a few milliseconds apart."""
    made = []
    for name in names:
        made.append(older_command(keys.operator, keys.operator_key, name=name, flags=1, **options))
        time.sleep(0.005)
    return made


def test_programs_that_share_a_key_do_not_refuse_each_other(make_router, keys):
    router = make_router(localhop(keys))
    peers = Peer(router), Peer(router)
    for number in range(20):
        first, second = registrations(keys, f"/first/{number}", f"/second/{number}")
        assert peers[1].answer(second)[0] == 200
        assert peers[0].answer(first)[0] == 200, "signed earlier, arrived later"
        for command in (first, second):
            assert [peer.answer(command)[0] for peer in peers] == [403, 403]
    assert len(router.json("route", "list")) == 40


def test_a_clock_that_is_ahead_is_named_and_locks_no_key_out(make_router, keys):
    router = make_router(localhop(keys))
    peer = Peer(router)
    for ahead_s in (125, 20 * 24 * 3600):
        (early,) = registrations(keys, "/early", ahead_s=ahead_s)
        code, text = peer.answer(early)
        assert code == 403 and re.search(r"clock of the sender is (\d+) seconds ahead", text), text
        assert abs(int(re.search(r"is (\d+) seconds", text)[1]) - ahead_s) < 30, text
    (old,) = registrations(keys, "/old", ahead_s=-125)
    assert peer.answer(old)[0] == 403
    assert not router.json("route", "list")
    # A clock that is ahead within the limit, then a correct one, then one that is slightly behind.
    for ahead_s in (100, 0, -5):
        (command,) = registrations(keys, "/right", ahead_s=ahead_s)
        assert peer.answer(command)[0] == 200 or ahead_s < 0
    assert len(router.json("route", "list")) == 1


def test_a_clock_that_is_set_back_locks_no_key_out(make_router, keys, tmp_path):
    clock, days_s = Clock(tmp_path), 3 * 24 * 3600
    clock.set(days_s)
    router = make_router(localhop(keys), start=False)
    router.prefix = clock.prefix
    peer = Peer(router.start())
    before = registrations(keys, "/before/1", "/before/2", ahead_s=days_s)
    assert [peer.answer(command)[0] for command in before] == [200, 200]
    clock.set(0)
    # The router notices the change with the next command, which was signed before that.
    code, text = peer.answer(*registrations(keys, "/first"))
    assert code == 200 or "sign it again in 1 seconds" in text, text
    after = registrations(keys, "/after/1", "/after/2")
    assert [peer.answer(command)[0] for command in after] == [200, 200]
    # No command is accepted again.
    assert [peer.answer(command)[0] for command in before + after] == [403] * 4
    assert {"/after/1", "/after/2", "/before/1", "/before/2"} <= {route["prefix"] for route in router.json("route", "list")}


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("has_state", [True, False])
def test_recorded_commands_do_not_work_again_after_a_restart(make_router, keys, end, has_state):
    router = make_router(localhop(keys), start=False)
    if not has_state:
        router.extra += "[state]\nenabled = false\n"
    router.start()
    recorded = registrations(keys, *(f"/recorded/{number}" for number in range(5)))
    if has_state:
        # Signed with a clock that is ahead, so the time is later than the next start.
        recorded += registrations(keys, "/ahead", ahead_s=60)
    victim = Peer(router)
    assert {victim.answer(command)[0] for command in recorded} == {200}
    unseen = registrations(keys, "/unseen")
    getattr(router, end)()
    router.start()
    thief = Peer(router)
    for command in recorded + unseen:
        code, text = thief.answer(command)
        assert code == 403 and "before this router started" in text, text
    assert not router.json("route", "list")
    if not has_state:
        (new,) = registrations(keys, "/new")
        assert thief.answer(new)[0] == 200


def test_only_the_listed_certificate_commands_its_module(make_router, clients, keys):
    router = make_router(only_the_operator_routes(keys))
    both = [*REGISTER, "cs/erase", '{"name": "/a"}']
    for signer in (keys.member, keys.stranger, "digest"):
        assert codes(clients.run("ndnts", "command", router.unix_uri, "localhost", signer, *both)) == [403, 403]
    assert not routes(router, "/a")
    # The certificate is authorized for module rib only, and every command is accepted only once.
    steps = [*both, "rib/unregister", '{"name": "/a", "origin": 0}', "replay", "0"]
    answers = clients.run("ndnts", "command", router.unix_uri, "localhost", keys.operator, *steps)
    assert codes(answers) == [200, 403, 200, 403], answers
    assert not routes(router, "/a")


def test_any_may_command_what_a_rule_gives_to_any(make_router, clients, keys):
    router = make_router('[[management.authorizations]]\ncertificate = "any"\nmodules = ["rib"]\n' + only_the_operator_routes(keys).replace("rib", "cs"))
    steps = [*REGISTER, "cs/erase", '{"name": "/a"}']
    assert codes(clients.run("ndnts", "command", router.unix_uri, "localhost", "digest", *steps)) == [200, 403]
    assert codes(clients.run("ndnts", "command", router.unix_uri, "localhost", keys.operator, *steps[2:])) == [200]


def test_namehop_commands_with_and_without_the_listed_key(make_router, keys, tmp_path):
    """Datasets remain readable for everybody. An unauthorized command is refused with a reason; the listed NDNts key authorizes it."""
    router = make_router(only_the_operator_routes(keys))
    assert router.json("status")

    def key(stem):
        return ["--signing-key", f"{stem}.pem", "--certificate", f"{stem}.ndncert"]

    for signing in ([], key(keys.stranger), key(keys.member)):
        refused = router.namehop("route", "add", "/b", "1", *signing, check=False)
        assert refused.returncode == 1 and "403" in refused.stderr and "not authorized" in refused.stderr, refused.stderr
    assert not routes(router, "/b")
    router.namehop("route", "add", "/b", "1", *key(keys.operator))
    assert len(routes(router, "/b")) == 1
    environment = {"NAMEHOP_SIGNING_KEY": f"{keys.operator}.pem", "NAMEHOP_CERTIFICATE": f"{keys.operator}.ndncert"}
    router.namehop("route", "remove", "/b", "1", env=environment)
    assert not routes(router, "/b")
    # Another module needs another rule.
    refused = router.namehop("strategy", "set", "/b", "multicast", *key(keys.operator), check=False)
    assert refused.returncode == 1 and "403" in refused.stderr, refused.stderr

    # `namehop put` signs its registration with the key of its Data.
    content = tmp_path / "content"
    content.write_bytes(b"content")
    refused = router.namehop("put", "/c", "--file", content, check=False)
    assert refused.returncode == 1 and "403" in refused.stderr, refused.stderr
    publisher = router.spawn("put", "/c", "--file", content, *key(keys.operator))
    try:
        wait_until(lambda: routes(router, "/c"), what="registered")
        assert router.namehop("cat", "/c", "--certificate", f"{keys.operator}.ndncert").stdout == "content"
    finally:
        publisher.kill()
        publisher.wait(PATIENCE)


def test_certificates_of_namehop_serve_ndnts_and_back(make_router, clients, keys, tmp_path):
    """An NDNts client uses a key from `namehop key generate`, and `namehop key show` reads an NDNts certificate."""
    stem = tmp_path / "made"
    router = make_router(localhop(SimpleNamespace(operator=stem, issued=keys.issued)), start=False)
    router.namehop("key", "generate", "/net/made", "--key", f"{stem}.pem", "--certificate", f"{stem}.ndncert")
    router.start()
    assert codes(clients.run("ndnts", "command", router.udp_uri, "localhop", stem, *REGISTER)) == [200]
    shown = router.json("key", "show", f"{keys.member}.ndncert")
    assert shown["identity"] == "/net/member" and shown["valid_now"]


def test_a_trusted_announcement_makes_a_route(make_router, clients, keys):
    router = make_router(announcements(keys))
    clients.start("ndnts", "produce", router.unix_uri, "/announced", "localhost", "digest", keys.member)
    (route,) = wait_until(lambda: routes(router, "/announced"), what="announced")
    assert route["origin"] == "prefixann" and route["flags"] == "child-inherit" and 0 < route["expires_ms"] <= 3_600_000
    (answer,) = clients.run("ndnts", "consume", router.tcp_uri, "/announced/1")
    assert answer["result"] == "data"
    clients.stop()
    wait_until(lambda: not routes(router, "/announced"), what="the route goes with its face")


def test_an_untrusted_announcement_is_refused(make_router, clients, keys):
    router = make_router(announcements(keys))
    steps = ["announce", keys.stranger, "announce", "digest", "announce", keys.operator]
    answers = clients.run("ndnts", "command", router.unix_uri, "localhost", "digest", *steps)
    assert codes(answers) == [403, 403, 200], answers
    without_anchors = make_router()
    answers = clients.run("ndnts", "command", without_anchors.unix_uri, "localhost", "digest", "announce", keys.operator)
    assert codes(answers) == [403], answers


def learners(make_router, trust):
    """Makes three self-learning routers in a line, linked by UDP. `trust` has the additional configuration of each."""
    line = [make_router(extra, name=name) for extra, name in zip(trust, ("entry", "middle", "exit"))]
    for near, far in zip(line, line[1:]):
        near.namehop("face", "create", far.udp_uri, "--persistency", "permanent")
    for router in line:
        router.namehop("strategy", "set", "/", "self-learning")
    return line


def learned(line, prefix):
    return [[route["origin"] for route in routes(router, prefix)] for router in line]


def test_self_learning_finds_a_producer_and_leaves_routes(make_router, clients, keys):
    entry, middle, exit_ = line = learners(make_router, [announcements(keys)] * 3)
    clients.start("ndnts", "produce", exit_.unix_uri, "/learn/me", "localhost", "digest", keys.member)
    wait_until(lambda: routes(exit_, "/learn/me"), what="announced")
    assert learned(line, "/learn/me") == [[], [], ["prefixann"]]
    (answer,) = clients.run("ndnts", "consume", entry.unix_uri, "/learn/me/1")
    assert answer["result"] == "data"
    wait_until(lambda: learned(line, "/learn/me") == [["prefixann"]] * 3, what="learned on the way")
    (towards,) = [face for face in entry.json("face", "list") if face["remote_uri"] == middle.udp_uri]
    assert routes(entry, "/learn/me")[0]["face_id"] == towards["face_id"]
    # Further Interests follow the learned routes.
    output = entry.namehop("ping", "/learn/me", "--count", "3", "--interval", "10ms").stdout
    assert " 0.0% loss" in output, output

    # The producer stops. The NoRoute Nack of its router removes the learned routes.
    clients.stop()
    wait_until(lambda: not routes(exit_, "/learn/me"), what="the route goes with its face")
    clients.run("ndnts", "consume", entry.unix_uri, "/learn/me/2", 300)
    wait_until(lambda: learned(line, "/learn/me") == [[], [], []], what="forgotten on the way")


def test_self_learning_learns_nothing_from_strangers(make_router, clients, keys):
    """Only the exit trusts the stranger: Data comes back, but the other routers keep no route."""
    trusts_the_stranger = announcements(SimpleNamespace(operator=keys.stranger, issued=keys.issued))
    entry, _, exit_ = line = learners(make_router, [announcements(keys), announcements(keys), trusts_the_stranger])
    clients.start("ndnts", "produce", exit_.unix_uri, "/learn/me", "localhost", "digest", keys.stranger)
    wait_until(lambda: routes(exit_, "/learn/me"), what="announced")
    (answer,) = clients.run("ndnts", "consume", entry.unix_uri, "/learn/me/1")
    assert answer["result"] == "data"
    time.sleep(0.2)
    assert learned(line, "/learn/me") == [[], [], ["prefixann"]]
