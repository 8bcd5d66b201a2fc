"""Commands that need Namehop report another forwarder at once."""

import contextlib
import socket
import threading
import time

import pytest

from conftest import PATIENCE, run_namehop

COMMANDS = {
    "ndt list": ["ndt", "list"],
    "ndt move": ["ndt", "move", "/a/b", "0"],
    "latency": ["latency"],
    "latency --sample": ["latency", "--sample", "2"],
    "trace": ["trace", "--name", "/a", "--count", "1"],
    "strategy list --loaded": ["strategy", "list", "--loaded"],
    "strategy unload": ["strategy", "unload", "a"],
}


def copy(source, target):
    """Copies bytes and replaces the version with that of another forwarder."""
    with contextlib.suppress(OSError), source, target:
        while data := source.recv(65_536):
            target.sendall(data.replace(b"Namehop/", b"Another/"))


@pytest.fixture
def other(make_router, tmp_path):
    """The Unix socket of a router that presents itself as another forwarder."""
    router = make_router()
    path = tmp_path / "other.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            far = router.connect()
            for way in (client, far), (far.dup(), client.dup()):
                threading.Thread(target=copy, args=way, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"unix://{path}"
    listener.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_another_forwarder_is_named_at_once(other, name):
    began = time.monotonic()
    refused = run_namehop("--transport", other, *COMMANDS[name], check=False)
    assert refused.returncode == 1 and "this forwarder is 'Another/" in refused.stderr, refused.stderr
    assert time.monotonic() - began < 5


def test_a_forwarder_that_says_nothing_is_not_waited_for_long(tmp_path):
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        began = time.monotonic()
        refused = run_namehop("--transport", f"unix://{path}", "ndt", "list", check=False)
    assert refused.returncode == 4 and "did not report its version" in refused.stderr, refused.stderr
    assert time.monotonic() - began < PATIENCE / 2
