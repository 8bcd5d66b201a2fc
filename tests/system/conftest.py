"""Fixtures of the system tests: routers as separate processes, and runners for client programs.

The program under test is $NAMEHOP (default target/debug/namehop). Every router gets its own folder, socket and ports, so tests do not
interfere with a router that runs on the host.
"""

import hashlib
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packets import interest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str((ROOT / os.environ.get("NAMEHOP", "target/debug/namehop")).resolve())
NDNTS = ROOT / "tests/system/ndnts"
NDN_JS = ROOT / "tests/system/ndnjs"
PYNDN_CLIENTS = ROOT / "tests/system/pyndn"
PYTHON_CLIENTS = ROOT / "tests/system/python"
TEN_MEGABYTES = 10_000_000
# Default number of workers of a router. The whole suite can run with several workers.
WORKERS = int(os.environ.get("NAMEHOP_WORKERS", "1"))
# Default time limit of a wait, in seconds: long enough for slow and busy hosts.
PATIENCE = 60.0


# Files of tests that measure times or rates, or that keep two CPUs busy. Parallel tests would disturb them, so `make system-test` runs these
# files last and one by one. In other files, the mark `alone` is on single tests. A test that waits for events, or that measures the CPU time of
# a router, needs no idle host.
ALONE = {
    "test_attack.py",
    "test_bench_links.py",
    "test_bench_peers.py",
    "test_footprint.py",
    "test_start.py",
}


# Files that take longest, as one test or with all their tests. They start first; otherwise the other processes would wait for them at the
# end.
LONG = [
    "test_path_mtu.py",
    "test_host_names.py",
    "test_dead_paths.py",
    "test_keep_alive.py",
    "test_link_faults.py",
    "test_link_state.py",
    "test_clients.py",
    "test_interop_ndncat.py",
    "test_disk_cache.py",
    "test_trust.py",
    "test_attack_p4runtime.py",
    "test_internet_ports.py",
    "test_old_libraries.py",
    "test_interfaces.py",
    "test_overload.py",
    "test_capture_ports.py",
    "test_bad_input.py",
    "test_faults.py",
    "test_p4_batches.py",
    "test_p4_run.py",
    "test_state.py",
    "test_systemd.py",
]


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: says something only where nothing else runs")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in ALONE:
            item.add_marker("alone")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


# Ports below the ephemeral range, so that no outgoing connection takes a port before the router does. Each parallel test process has its
# own part of the range, so it cannot take the port of a router that another process is restarting.
PARTS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
PART = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS_OF_PART = 12_000 // PARTS
PORTS = itertools.cycle(range(20_000 + PART * PORTS_OF_PART, 20_000 + (PART + 1) * PORTS_OF_PART))
# Start at a different port in each test run, because several runs may share the host.
for _ in range(os.getpid() * 97 % PORTS_OF_PART):
    next(PORTS)


def free_port(kind=socket.SOCK_STREAM):
    """Returns a port of this host that is free and will not be returned again soon."""
    while True:
        port = next(PORTS)
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def let_others_enter(folder):
    """Allows other users to traverse a test's folder and those parent folders that belong to the tests."""
    for path in [folder, *folder.parents]:
        if path != path.parent and path.stat().st_uid == os.geteuid() and path.is_relative_to("/tmp"):
            path.chmod(path.stat().st_mode | 0o711)


def wait_until(condition, seconds=PATIENCE, what="condition"):
    """Polls until the condition returns a true value, and returns that value.

    The pauses grow to a twentieth of the time so far, because most conditions run a command, and other tests need the CPUs.
    """
    begin = time.monotonic()
    end = begin + seconds
    while True:
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(max(0.02, min((now - begin) / 20, 0.25, end - now)))


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A file of ten megabytes."""
    file = tmp_path_factory.mktemp("content") / "object.bin"
    file.write_bytes(os.urandom(TEN_MEGABYTES))
    return file


class Router:
    """A running `namehop run`."""

    def __init__(self, folder, extra="", name="router", workers=WORKERS):
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.socket = self.folder / "nfd.sock"
        self.tcp, self.ws, self.metrics = free_port(), free_port(), free_port()
        self.udp = free_port(socket.SOCK_DGRAM)
        self.config = self.folder / "namehop.toml"
        self.extra = extra
        # Ignored if `extra` sets the number of workers.
        self.workers = workers
        # A command prefix, for example to run the router in a network namespace.
        self.prefix = []
        self.process = None
        self.log = self.folder / "log.txt"

    @property
    def unix_uri(self):
        return f"unix://{self.socket}"

    @property
    def tcp_uri(self):
        return f"tcp4://127.0.0.1:{self.tcp}"

    @property
    def udp_uri(self):
        return f"udp4://127.0.0.1:{self.udp}"

    @property
    def ws_uri(self):
        return f"ws://127.0.0.1:{self.ws}"

    def uri(self, transport):
        return getattr(self, f"{transport}_uri")

    def write_config(self):
        sections = {
            "faces.unix": f'path = "{self.socket}"',
            "faces.tcp": f'listen = ["127.0.0.1:{self.tcp}"]',
            "faces.udp": f'listen = ["127.0.0.1:{self.udp}"]',
            "faces.websocket": f'listen = ["127.0.0.1:{self.ws}"]',
            "metrics": f'listen = "127.0.0.1:{self.metrics}"',
            "state": f'file = "{self.folder / "state.json"}"',
        }
        lines = []
        for section, text in sections.items():
            if f"[{section}]" not in self.extra:
                lines.append(f"[{section}]\n{text}")
        self.config.write_text("\n".join(lines) + "\n" + self.extra_with_workers())

    def extra_with_workers(self):
        if self.workers == 1 or "workers =" in self.extra:
            return self.extra
        forwarding = f"[forwarding]\nworkers = {self.workers}"
        if "[forwarding]" in self.extra:
            return self.extra.replace("[forwarding]", forwarding)
        return f"{self.extra}\n{forwarding}\n"

    def start(self):
        self.write_config()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, PROGRAM, "run", "--config", str(self.config)], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )
        wait_until(self._answers, what=f"{self.name} listens (see {self.log})")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.log.read_text()}")
        try:
            with self.connect() as probe:
                # The Unix socket exists slightly before the other listeners. The router answers only when all of them listen.
                probe.settimeout(1)
                probe.sendall(interest("/localhost/nfd/status/general", can_be_prefix=True, must_be_fresh=True))
                return bool(probe.recv(1))
        except OSError:
            return False

    def stop(self):
        """Asks the router to end and checks that it ends cleanly."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(PATIENCE)
            assert code == 0, f"{self.name} ended with {code}:\n{self.log.read_text()}"
        assert "panicked" not in self.log.read_text(), self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def namehop(self, *arguments, check=True, timeout=60, **options):
        """Runs a namehop command against this router."""
        return run_namehop(*arguments, transport=self.unix_uri, check=check, timeout=timeout, **options)

    def json(self, *arguments):
        return json.loads(self.namehop(*arguments, "--json").stdout)

    def spawn(self, *arguments, **options):
        """Starts a namehop command that keeps running, such as `serve`."""
        environment = {**os.environ, "NDN_CLIENT_TRANSPORT": self.unix_uri}
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket))
        connection.settimeout(PATIENCE)
        return connection


def of_threads(process, file):
    """Yields the content of a /proc file of each thread of a process. Skips threads that end meanwhile."""
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        try:
            yield (thread / file).read_text()
        except FileNotFoundError:
            continue


def run_namehop(*arguments, transport=None, check=True, timeout=60, text=True, **options):
    environment = {**os.environ, "HOME": "/nonexistent"}
    environment.pop("NDN_CLIENT_TRANSPORT", None)
    if transport:
        environment["NDN_CLIENT_TRANSPORT"] = transport
    environment.update(options.pop("env", {}))
    result = subprocess.run(
        [PROGRAM, *map(str, arguments)], env=environment, capture_output=True, timeout=timeout, text=text, **options
    )
    if check:
        assert result.returncode == 0, f"namehop {arguments}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture
def workers():
    """Number of workers of a test's routers. A test that needs a fixed number parametrizes `workers`."""
    return WORKERS


@pytest.fixture
def make_router(tmp_path, workers):
    """Makes and starts routers; all are stopped at the end of the test."""
    routers = []

    def make(extra="", name=None, start=True):
        router = Router(tmp_path, extra, name or f"router{len(routers)}", workers)
        routers.append(router)
        return router.start() if start else router

    yield make
    for router in routers:
        router.stop()


@pytest.fixture
def router(make_router):
    return make_router()


class Clients:
    """Runs programs that use NDNts and ndn-js (Node.js), python-ndn and PyNDN."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    @staticmethod
    def command(language, script, arguments):
        node = shutil.which("node") or "node"
        program = {
            "ndnts": [node, NDNTS / f"{script}.mjs"],
            "ndnjs": [node, NDN_JS / f"{script}.js"],
            "python": [sys.executable, PYTHON_CLIENTS / f"{script}.py"],
            "pyndn": [sys.executable, PYNDN_CLIENTS / f"{script}.py"],
        }[language]
        return [*map(str, program), *map(str, arguments)]

    def environment(self):
        # An empty home folder, so that no client.conf or key store of the host is used.
        return {**os.environ, "HOME": str(self.folder), "NDN_CLIENT_TRANSPORT": ""}

    def run(self, language, script, *arguments, timeout=90):
        """Runs a program to its end and returns the JSON lines that it printed."""
        result = subprocess.run(
            self.command(language, script, arguments), capture_output=True, text=True, timeout=timeout, env=self.environment()
        )
        assert result.returncode == 0, f"{language} {script} {arguments}:\n{result.stdout}\n{result.stderr}"
        return [json.loads(line) for line in result.stdout.splitlines()]

    def start(self, language, script, *arguments):
        """Starts a program that serves and returns its first JSON line."""
        process = subprocess.Popen(
            self.command(language, script, arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()
        )
        self.running.append(process)
        line = process.stdout.readline()
        assert line, f"{language} {script} {arguments}:\n{process.stderr.read()}"
        return json.loads(line)

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture
def clients(tmp_path):
    runner = Clients(tmp_path)
    yield runner
    runner.stop()
