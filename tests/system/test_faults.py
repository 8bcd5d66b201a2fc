"""Failures are never silent: the failure of any part ends the router. Signals end it cleanly at any time. An unread log does not block it.
"""

import os
import random
import signal
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, wait_until
from packets import command, data, interest, read_element, register, status

CLEAN, FAULT = 0, 1
PREFIXES = 30_000


def start(router, *, stderr=None, **environment):
    """Starts the router without waiting for it."""
    router.write_config()
    log = open(router.log, "ab")
    router.process = subprocess.Popen(
        [PROGRAM, "run", "--config", str(router.config)],
        stdout=log,
        stderr=stderr or log,
        cwd=router.folder,
        env={**os.environ, **environment},
        preexec_fn=heed_signals,
    )
    log.close()
    return router.process


def heed_signals():
    """Restores the default action of SIGHUP and SIGINT. The tests may run under nohup or in a background job, which ignore these signals,
    and a router that inherits this would ignore signals during its first moment.
    """
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_DFL)


def has_faults():
    """True if the program was built with fault injection."""
    return b"NAMEHOP_FAULT" in open(PROGRAM, "rb").read()


@pytest.mark.parametrize(
    "part",
    [
        "socket service",
        "forwarding worker",
        "worker task",
        "management task",
        "face events task",
        "restoring",
        "metrics collection",
        "metrics server",
        "API task",
        "FIB loader",
        "FIB file thread",
        "ports thread",
        "worker thread",
    ],
)
def test_a_part_that_fails_ends_the_router(make_router, tmp_path, part):
    if not has_faults():
        pytest.skip("a program built for use has no faults to ask for")
    fib = tmp_path / "fib.txt"
    fib.write_text("/loaded udp4://127.0.0.1:7011\n")
    extra = f'[fib]\nfile = "{fib}"\n'
    if part in ("ports thread", "worker thread"):
        extra += f'[[face]]\nuri = "memif://{tmp_path}/m.sock?id=0"\n'
    router = make_router(extra, start=False)
    # The worker runs as a task only in a router with one worker and no ports; otherwise workers are threads.
    router.workers = 1 if part == "worker task" else router.workers
    process = start(router, NAMEHOP_FAULT=part)
    assert process.wait(PATIENCE) == FAULT, router.log.read_text()
    log = router.log.read_text()
    assert f"a fault was requested in {part}" in log and "the router ended because of a fault" in log
    assert not router.socket.exists()
    # The router works after a restart.
    router.log.write_text("")
    router.extra = ""
    router.start()
    router.namehop("status")


def write_state(router, routes):
    """Writes a state file with this number of routes."""
    router.folder.mkdir(parents=True, exist_ok=True)
    peer = "udp4://127.0.0.1:7009"
    with open(router.folder / "state.json", "w") as state:
        state.write('{"header":{"format":"namehop-state","version":1}}\n')
        state.write(f'{{"face":{{"uri":"{peer}","persistency":2,"flags":0}}}}\n')
        for number in range(routes):
            state.write(f'{{"route":{{"prefix":"/saved/{number}","face":"{peer}","cost":1,"flags":1}}}}\n')


def test_signals_end_it_cleanly_at_any_moment_of_the_start(make_router, tmp_path):
    fib = tmp_path / "fib.txt"
    fib.write_text("".join(f"/loaded/{number} udp4://127.0.0.1:7011\n" for number in range(PREFIXES)))
    router = make_router(f'[fib]\nfile = "{fib}"\n', start=False)
    write_state(router, PREFIXES)
    started = time.monotonic()
    process = start(router)
    wait_until(lambda: b"FIB entries loaded" in router.log.read_bytes(), what="the whole start")
    whole_start = time.monotonic() - started
    process.send_signal(signal.SIGHUP)
    assert process.wait(PATIENCE) == CLEAN
    attempts = ended = 0
    while ended < 30:
        attempts += 1
        assert attempts < 1000, "nearly all signals come too early"
        process = start(router)
        time.sleep(random.uniform(0, whole_start))
        process.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[attempts % 3])
        code = process.wait(PATIENCE)
        # Before the router has installed its handlers, the default action of a signal ends it, and there is nothing to clean up.
        ended += code >= 0
        assert code <= CLEAN, router.log.read_text()
        assert not router.socket.exists()
        assert not list(router.folder.glob("*.new"))
    router.start()
    assert len(router.json("route", "list")) >= PREFIXES


def test_the_second_signal_ends_it_at_once(make_router):
    router = make_router(start=False)
    write_state(router, 300_000)
    process = start(router)
    wait_until(router.socket.exists, what="the start")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) in (CLEAN, 128 + signal.SIGINT, 128 + signal.SIGTERM)


def test_nohup_outlives_its_terminal(make_router):
    router = make_router(start=False)
    router.prefix = ["nohup"]
    router.start()
    router.process.send_signal(signal.SIGHUP)
    router.namehop("status")
    assert router.process.poll() is None


def test_a_log_that_nobody_reads_holds_up_nothing(make_router):
    router = make_router('[log]\nlevel = "trace"\n', start=False)
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(65536))
    except BlockingIOError:
        pass
    os.set_blocking(write, True)
    process = start(router, stderr=write)
    os.close(write)
    wait_until(router._answers, what="the start")
    with router.connect() as producer, router.connect() as consumer:
        # The route of an application; the router logs each command.
        producer.sendall(command("rib", "register", register("/made", 0, origin=0)))
        assert status(read_element(producer)[1])[0] == 200
        for number in range(2000):
            consumer.sendall(interest(f"/made/{number}"))
            read_element(producer)
            producer.sendall(data(f"/made/{number}"))
            assert read_element(consumer)[0] in (6, 0x64)
    for _ in range(20):
        router.namehop("face", "list")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == CLEAN
    os.close(read)


def test_lines_of_the_log_are_there_when_it_ends(make_router):
    router = make_router('[log]\nlevel = "debug"\n')
    router.namehop("route", "add", "/last", "udp4://127.0.0.1:7011")
    router.stop()
    assert "shutting down" in router.log.read_text()
