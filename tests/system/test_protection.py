"""Limits of commands, and service of local commands under a flood of remote ones."""

import base64
import os
import socket
import struct
import threading
import time

import pytest
from conftest import free_port, wait_until
from ndn.encoding import Name, parse_data
from packets import command, read_element, register, status, tlv
from strategies import STRATEGIES

LOCAL_COMMANDS = 200


def permanent_face(router):
    return router.json("face", "create", f"udp4://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", "--persistency", "permanent")


def refused(router, *arguments):
    result = router.namehop(*arguments, check=False)
    assert result.returncode == 1, result
    return result.stderr


def test_nobody_takes_commands_away_from_the_router(router):
    face = str(permanent_face(router)["face_id"])
    for prefix in ["/localhost/nfd", "/localhost/nfd/rib", "/localhost/nfd/faces/list"]:
        assert "406" in refused(router, "route", "add", prefix, face)
    router.namehop("route", "add", "/localhost", face)
    router.namehop("route", "add", "/localhop/nfd", face)
    for strategy in STRATEGIES:
        for prefix in ["/", "/localhost/nfd", "/localhost/nfd/rib"]:
            router.namehop("strategy", "set", prefix, strategy)
        assert router.json("status")["version"].startswith("Namehop/"), strategy
        router.namehop("route", "add", "/example", face)
    router.namehop("strategy", "unset", "/localhost/nfd/rib")
    router.namehop("strategy", "unset", "/localhost/nfd")
    assert {route["prefix"] for route in router.json("route", "list")} == {"/localhost", "/localhop/nfd", "/example"}


def test_a_state_file_that_takes_commands_away_heals(router):
    # The face id may change at a restart, so use the face URI.
    face = f"udp4://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    router.namehop("face", "create", face, "--persistency", "permanent")
    for prefix in ["/harmless", "/harmful"]:
        router.namehop("route", "add", prefix, face)
    router.stop()
    state = router.folder / "state.json"
    text = state.read_text()
    assert "/harmful" in text
    state.write_text(text.replace("/harmful", "/localhost/nfd/rib"))
    for _ in range(2):
        router.start()
        router.namehop("route", "add", "/another", face)
        prefixes = {route["prefix"] for route in router.json("route", "list")}
        assert prefixes == {"/harmless", "/another"}
        router.stop()
        assert router.log.read_text().count("prefix=/localhost/nfd/rib") == 1, "one warning, and none after that"


def test_commands_open_no_ports_outside_the_configured_places(router, tmp_path):
    kept = tmp_path / "kept.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(kept))
    for place in [kept, tmp_path / "new" / "x.sock", "/etc/x.sock", f"/run/ndn/../..{tmp_path}/x.sock"]:
        for suffix in ["", "&role=client"]:
            text = refused(router, "face", "create", f"memif://{place}?id=0{suffix}")
            assert "403" in text and "memif_folders" in text, text
    text = refused(router, "face", "create", "ether://[08:00:27:01:01:01]", "--local", "dev://lo")
    assert "403" in text and "`interfaces`" in text, text
    assert kept.exists() and not (tmp_path / "new").exists() and not os.path.exists("/etc/x.sock")


@pytest.fixture
def key(router, tmp_path):
    files = tmp_path / "key", tmp_path / "certificate"
    router.namehop("key", "generate", "/neighbour", "--key", files[0], "--certificate", files[1])
    return files


def wrongly_signed(certificate):
    """Encodes a registration in the older signed form, which needs no digest, with a wrong signature. Returns it with the offset of its
    nonce, so that each copy can have another nonce.
    """
    certificate_name = Name.to_str(certificate_name_of(certificate))
    key_name = Name.from_str(certificate_name)[:-2]
    locator = tlv(0x1C, Name.to_bytes(key_name))
    info = tlv(0x16, tlv(0x1B, b"\x03") + locator)
    parameters = tlv(0x68, tlv(0x07, tlv(0x08, b"flood")))
    now = struct.pack(">Q", int(time.time() * 1000))
    marker = b"NONCE..."
    signature = tlv(0x17, bytes.fromhex("30450220") + b"\x11" * 32 + bytes.fromhex("022100") + b"\x80" + b"\x11" * 32)
    components = [b"localhop", b"nfd", b"rib", b"register", parameters, now, marker, info, signature]
    name = tlv(0x07, b"".join(tlv(0x08, component) for component in components))
    packet = tlv(0x05, name + tlv(0x0A, b"abcd") + tlv(0x0C, b"\x64"))
    return bytearray(packet), packet.index(marker)


def certificate_name_of(file):
    return parse_data(base64.b64decode(file.read_text()))[0]


def test_a_flood_of_wrongly_signed_commands_keeps_no_local_command_waiting(make_router, router, key):
    _, certificate = key
    target = make_router(f'[management.localhop]\nanchors = ["{certificate}"]\n', name="target")
    packet, at = wrongly_signed(certificate)
    stop, sent = threading.Event(), [0]

    def flood():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.connect(("127.0.0.1", target.udp))
            while not stop.is_set():
                for _ in range(256):
                    struct.pack_into(">Q", packet, at, sent[0])
                    sent[0] += 1
                    try:
                        udp.send(packet)
                    except OSError:
                        pass

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        dropped = lambda: target.json("status")["drops"].get("link", {}).get("too-many-commands", 0)
        wait_until(lambda: dropped() > 0, what="more commands come than are looked at")
        received = lambda: sum(face["in_interests"] for face in target.json("face", "list") if face["remote_uri"].startswith("udp4"))
        before = received() - dropped()
        with target.connect() as application:
            for number in range(LOCAL_COMMANDS):
                application.sendall(command("rib", "register", register(f"/local/{number}", 1, origin=255)))
                assert status(read_element(application)[1])[0] == 200
        looked_at = received() - dropped() - before
    finally:
        stop.set()
        thread.join()
    # Commands of one neighbour wait in a separate queue of 256. With one queue for all, each local command would wait for a full queue of
    # others.
    assert looked_at < LOCAL_COMMANDS * 256 / 2, f"{looked_at} signatures were verified while {LOCAL_COMMANDS} local commands waited"
    assert {route["prefix"] for route in target.json("route", "list")} == {f"/local/{number}" for number in range(LOCAL_COMMANDS)}
