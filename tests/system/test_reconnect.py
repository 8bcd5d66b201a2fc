"""Commands that answer Interests continue after a restart of their router."""

import signal

import pytest

from applications import wait_for_route
from conftest import PATIENCE


def commands(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "text").write_bytes(b"a text")
    (tmp_path / "text").write_bytes(b"a text")
    return {
        "serve": (["serve", "/again"], ["ping", "/again", "--count", "1"]),
        "put": (["put", "/again", "--file", tmp_path / "text"], ["cat", "/again"]),
        "fileserver": (["traffic", "fileserver", "/again", tmp_path / "files"], ["cat", "/again/text"]),
    }


@pytest.mark.parametrize("name", ["serve", "put", "fileserver"])
def test_prefixes_are_registered_again_after_a_restart(make_router, tmp_path, name):
    router = make_router()
    serves, asks = commands(tmp_path)[name]
    application = router.spawn(*serves)
    try:
        for _ in range(3):
            wait_for_route(router, "/again")
            router.namehop(*asks)
            router.stop()
            router.start()
        wait_for_route(router, "/again")
        router.namehop(*asks)
        application.send_signal(signal.SIGTERM)
        _, errors = application.communicate(timeout=PATIENCE)
    finally:
        application.kill()
    assert application.returncode == 0
    errors = errors.decode()
    # One line for each loss, and one for each recovery, whatever the number of attempts.
    assert errors.count("lost the connection to the forwarder") == errors.count("registered /again again") == 3, errors
    assert "/again" not in router.namehop("route", "list").stdout


def test_commands_may_end_with_their_router(make_router):
    router = make_router()
    application = router.spawn("serve", "/again", "--no-reconnect")
    wait_for_route(router, "/again")
    router.stop()
    _, errors = application.communicate(timeout=PATIENCE)
    assert application.returncode != 0 and b"lost the connection to the forwarder" in errors


def test_a_command_that_waits_for_its_router_can_be_interrupted(make_router):
    router = make_router()
    application = router.spawn("serve", "/again")
    wait_for_route(router, "/again")
    router.stop()
    assert b"serving" in application.stderr.readline()
    assert b"lost the connection to the forwarder" in application.stderr.readline()
    application.send_signal(signal.SIGINT)
    assert application.wait(PATIENCE) == 0
