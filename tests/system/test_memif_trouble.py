"""A memif that does not come up: the log names the port and the reason, a few times."""

import os
import socket
import struct

from conftest import wait_until
from port_links import is_connected, link_state, ports
from test_memif import memif


def open_face(router, uri):
    return router.json("face", "create", uri, "--persistency", "permanent")


def warnings(router):
    return [line for line in router.log.read_text().splitlines() if "the link does not work" in line]


def wait_for_warning(router, *words):
    says_all = lambda: [line for line in warnings(router) if all(word in line for word in words)]
    (line,) = wait_until(says_all, what=f"a warning with {words}")
    assert " WARN " in line
    return line


def test_a_server_that_is_not_there_and_one_that_has_no_such_number(make_router, tmp_path):
    client = make_router(ports(0), name="client")
    open_face(client, memif(tmp_path, "client", number=5))
    wait_for_warning(client, "memif.sock?id=5", "cannot reach the server: No such file or directory")
    server = make_router(ports(1), name="server")
    open_face(server, memif(tmp_path, number=7))
    wait_for_warning(client, "connection failed", "no link with this id")
    wait_for_warning(server, "memif.sock?id=7", "a client requested id 5, but no port has this id")
    # With the right id the link works, and earlier warnings are not repeated.
    open_face(server, memif(tmp_path, number=5))
    wait_until(lambda: is_connected(client), what="the link works")
    assert len(warnings(client)) == 2 and len(warnings(server)) == 1


def test_a_socket_of_another_kind_and_two_ends_of_one_role(make_router, tmp_path):
    router = make_router(ports(0))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "memif.sock"))
        listener.listen()
        open_face(router, memif(tmp_path, "client"))
        wait_for_warning(router, "Protocol wrong type for socket")
    os.unlink(tmp_path / "memif.sock")
    first = make_router(ports(1), name="first")
    open_face(first, memif(tmp_path, number=1))
    refused = router.namehop("face", "create", memif(tmp_path, number=1), check=False)
    assert refused.returncode != 0 and "Address already in use" in refused.stderr, refused.stderr


HELLO, INIT, DISCONNECT = 2, 3, 8


def test_what_the_other_end_says_is_told_and_can_do_no_harm(make_router, tmp_path):
    """A server that refuses with a different reason each time, as servers do when secrets or sizes differ."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "memif.sock"))
        listener.listen()
        listener.settimeout(20)
        router = make_router(ports(0))
        open_face(router, memif(tmp_path, "client"))
        for attempt, reason in enumerate([b"wrong secret", b"rings\n\x1b[31m", b"\xff\xfe", b"and another"]):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(20)
                hello = struct.pack("=H32sHHHHHB", HELLO, b"a test", 0x0200, 0x0200, 0, 0, 0, 10)
                connection.send(hello.ljust(128, b"\0"))
                assert struct.unpack_from("=H", connection.recv(128))[0] == INIT
                connection.send(struct.pack("=HI", DISCONNECT, attempt) + reason.ljust(122, b"\0"))
                connection.recv(128)
        wait_until(lambda: len(warnings(router)) == 3, what="three lines")
        assert 'connection failed: the peer says "wrong secret"' in warnings(router)[0]
        text = router.log.read_text()
        assert "\x1b" not in text and "and another" not in text, "not more than a few lines in a minute"
    assert link_state(router) != "up"
