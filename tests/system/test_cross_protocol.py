"""Text that a web page can make a browser send to the router's TCP port. The router must not execute a command in it."""

import os
import socket
import subprocess
import threading

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from packets import read_number, split_element


def captured_command(folder, *arguments):
    """Returns the command Interest that `namehop ARGUMENTS` sends. It is valid, and no router has seen it."""
    path = folder / "capture.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    environment = {**os.environ, "HOME": "/nonexistent", "NDN_CLIENT_TRANSPORT": f"unix://{path}"}
    client = subprocess.Popen(
        [PROGRAM, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        listener.settimeout(PATIENCE)
        connection, _ = listener.accept()
        connection.settimeout(PATIENCE)
        received = b""
        while not split_element(received):
            received += connection.recv(65536)
        return split_element(received)[1]
    finally:
        client.kill()
        client.wait()
        listener.close()
        path.unlink()


def request(method, target, body):
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:6363\r\nConnection: keep-alive\r\nContent-Length: {len(body)}\r\n"
        'sec-ch-ua-platform: "Linux"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) '
        'Chrome/131.0.0.0 Safari/537.36\r\nsec-ch-ua: "Chromium";v="131", "Not_A Brand";v="24"\r\nsec-ch-ua-mobile: ?0\r\n'
        "Accept: */*\r\nOrigin: https://page.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"
        "Sec-Fetch-Dest: empty\r\nReferer: https://page.example/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
        "Accept-Language: en-US,en;q=0.9\r\n\r\n"
    ).encode()
    return head, head + body


def end_of_elements(text, end):
    """Parses the text as elements of any type. Returns the end of the first element that ends at or after `end`, or None on an error."""
    at = 0
    while at < end:
        try:
            _, after_type = read_number(text, at)
            length, value = read_number(text, after_type)
        except (IndexError, KeyError):
            return None
        at = value + length
    return at


def aligned_request(method, command):
    """Returns a request with a command in its body, preceded by filler that completes the element in which the header ends."""
    size = len(command) + 300
    for length in range(1, 100):
        target = "/" + "a" * length
        head, probe = request(method, target, b"x" * size)
        end = end_of_elements(probe, len(head))
        if end is not None and end < len(head) + 300:
            body = b"x" * (end - len(head)) + command
            return request(method, target, body + b"x" * (size - len(body)))[1]
    raise AssertionError("no address makes the command an element")


def send_and_await_the_end(router, payload):
    connection = socket.create_connection(("127.0.0.1", router.tcp), 5)
    connection.settimeout(PATIENCE)
    answer = b""
    try:
        connection.sendall(payload)
        while received := connection.recv(65536):
            answer += received
    except (ConnectionResetError, BrokenPipeError):
        pass
    finally:
        connection.close()
    return answer


def strategies(router):
    return {choice["prefix"] for choice in router.json("strategy", "list")}


@pytest.fixture
def command(tmp_path):
    return captured_command(tmp_path, "strategy", "set", "/hijacked", "multicast")


def test_the_captured_command_is_valid(router, command):
    """Checks that the command takes effect when an application sends it without disguise."""
    application = socket.create_connection(("127.0.0.1", router.tcp), 5)
    application.sendall(command)
    wait_until(lambda: "/hijacked" in strategies(router), what="the command is carried out")


@pytest.mark.parametrize("method", ["POST", "PUT", "dAV"])
def test_a_cross_site_request_commands_nothing(router, command, method):
    # "dAV" parses as a link packet with a length of 65. The text determines where its elements end.
    payload = aligned_request("POST", command) if method == "POST" else request(method, "/x", command)[1]
    assert send_and_await_the_end(router, payload) == b"", "the router says nothing"
    assert "/hijacked" not in strategies(router)
    wait_until(lambda: router.json("status")["drops"]["link"].get("not-ndn-frame", 0) >= 1, what="the drop is counted")


@pytest.mark.parametrize("opening", [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
    b"USER anonymous\r\nPASS guest\r\n",
    b"EHLO page.example\r\n",
    b"dEb /" + b"t" * 31 + b"P!" + b"f" * 33,
], ids=["http2", "tls", "ftp", "smtp", "text-that-is-a-link-packet"])
def test_other_protocols_command_nothing(router, command, opening):
    assert send_and_await_the_end(router, opening + command) == b""
    assert "/hijacked" not in strategies(router)


def test_a_flood_of_garbage_writes_few_log_lines(router):
    threads = [
        threading.Thread(target=lambda: [send_and_await_the_end(router, b"GET / HTTP/1.1\r\n\r\n") for _ in range(25)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert router.json("status")["drops"]["link"]["not-ndn-frame"] == 200
    assert router.log.read_text().count("stream is not NDN") <= 10
