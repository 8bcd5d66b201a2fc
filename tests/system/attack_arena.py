"""The set-up of the attack tests: a router, attackers and well-behaved applications, each in a network namespace.

The router has one link to the attackers and one to the well-behaved remote applications, with addresses reserved for documentation. Local
applications and the operator use the router's Unix socket.
"""

import contextlib
import fcntl
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from attack_limits import CONFIGURATION, DESCRIPTORS, LISTENERS, LOCAL_READERS, LOCAL_ROUTES, END_SECONDS, EXCHANGES_PER_SECOND, LIFETIME_MS, SHORT_COMMAND_SECONDS, UNCOUNTED
from attack_plans import PLANS
from conftest import PROGRAM, ROOT, Router, wait_until
from packets import command, interest, register

ATTACKER = str(ROOT / "target/debug/examples/attack")
FRIEND_BIND = "192.0.2.66:7000"
# The attack starts this long before the well-behaved applications, so that they connect under attack.
HEAD_START_SECONDS = 0.7
# The HTTP server takes one request per connection.
HTTP_REQUESTS = """
import http.client
for path in ['/api/v1/status', '/api/v1/faces', '/metrics']:
    connection = http.client.HTTPConnection('127.0.0.1', 9697, timeout=30)
    connection.request('GET', path)
    response = connection.getresponse()
    assert response.status == 200 and response.read(), path
"""


class Arena:
    """Three network namespaces: router, attackers ("x") and friends ("f"). All are removed at the end."""

    def __init__(self):
        self.router, self.attackers, self.friends = (f"attack{os.getpid()}{end}" for end in "rxf")
        self.all = [self.router, self.attackers, self.friends]

    def __enter__(self):
        for namespace in self.all:
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        links = [(self.attackers, "attack0", "192.0.2.1/26", "192.0.2.2/26"), (self.friends, "attack1", "192.0.2.65/26", "192.0.2.66/26")]
        for other, device, here, there in links:
            run("ip", "link", "add", device, "netns", self.router, "type", "veth", "peer", "name", device, "netns", other)
            for namespace, address in [(self.router, here), (other, there)]:
                run("ip", "-n", namespace, "address", "add", address, "dev", device)
                run("ip", "-n", namespace, "link", "set", device, "up")
        for namespace, address in [(self.router, "2001:db8:1::1/64"), (self.attackers, "2001:db8:1::2/64")]:
            run("ip", "-n", namespace, "address", "add", address, "dev", "attack0", "nodad")
        # Route the invented source addresses, and one network per sender, to the attackers.
        run("ip", "-n", self.router, "route", "add", "192.0.2.128/25", "via", "192.0.2.2")
        run("ip", "-n", self.router, "-6", "route", "add", "2001:db8:bad::/48", "via", "2001:db8:1::2")
        run("ip", "-n", self.attackers, "-6", "route", "add", "local", "2001:db8:bad::/48", "dev", "lo")
        run(*self.inside(self.attackers), "sysctl", "-qw", "net.ipv6.ip_nonlocal_bind=1")
        return self

    def __exit__(self, *_):
        for namespace in self.all:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def inside(self, namespace):
        return ["ip", "netns", "exec", namespace]


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def more_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))


class AttackedRouter(Router):
    """A router with few file descriptors. Its log goes into a pipe that is read only at the end."""

    def __init__(self, folder, arena, extra, group=None):
        # In a memory-limited group, the router must derive its settings from the limit.
        super().__init__(folder, (LISTENERS if group else CONFIGURATION) + extra)
        self.prefix = arena.inside(arena.router)
        if group:
            # `ip netns exec` would hide the control groups.
            self.prefix = [*group.command(), "nsenter", f"--net=/run/netns/{arena.router}"]

    def start(self):
        self.write_config()
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        self.log_pipe = reader
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, DESCRIPTORS)
        command = [*self.prefix, PROGRAM, "run", "--config", str(self.config)]
        self.process = subprocess.Popen(command, stdout=writer, stderr=writer, cwd=self.folder, preexec_fn=limit)
        os.close(writer)
        self.log.write_text("")
        wait_until(self._answers, what=f"{self.name} listens")
        return self

    def processor_seconds(self):
        """Returns the CPU time of all threads in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """Stops the router. Returns its exit code, or a text that says why there is none, and stores its log."""
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(os.fdopen(self.log_pipe, errors="replace")))
        try:
            self.process.terminate()
            # The log pipe is still unread here: a router that blocks on its log would not end, and the test would fail.
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = f"not ended within {END_SECONDS:g} s"
        reader.start()
        reader.join(10)
        self.log.write_text("".join(lines))
        return code


class Battle:
    """One run of the router under some attacks, or none, and its results."""

    def __init__(self, folder, arena, keys, attacks, seconds, together=False, rates=1.0, group=None):
        self.group = group
        self.arena, self.attacks, self.seconds, self.together, self.rates = arena, attacks, seconds, together, rates
        self.locator, self.key, self.certificate = keys.locator, keys.key, keys.certificate
        self.router = AttackedRouter(folder, arena, f'[management.localhop]\nanchors = ["{keys.certificate}"]\n', group)
        self.processes, self.commands = [], []

    def start(self, namespace, name, **options):
        prefix = self.arena.inside(namespace) if namespace else []
        options.setdefault("seconds", self.seconds + 8)
        arguments = [f"{key}={value}" for key, value in options.items()]
        # Real attackers have their own hosts; here a low priority keeps them from taking the CPUs from the others.
        nice = ["nice", "-n", "10"] if name not in ("ask", "answer") else []
        process = subprocess.Popen(
            [*prefix, *nice, ATTACKER, name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=more_descriptors
        )
        self.processes.append(process)
        return process

    def start_producers(self):
        router, unix = self.router, f"unix:{self.router.socket}"
        local = dict(to=unix, register="yes")
        producers = [
            self.start(None, "answer", prefix="/victim/near", payload=1000, **local),
            self.start(None, "answer", prefix="/victim/late", payload=100, delay_ms=500, **local),
            self.start(None, "answer", prefix="/open/big", payload=8000, **local),
            self.start(None, "answer", prefix="/open/endless", payload=4, **local),
            self.start(None, "answer", prefix="/silent", answers="no", **local),
            # Each Data is sent in four fragments.
            self.start(self.arena.friends, "answer", to="udp:192.0.2.65:6363", bind=FRIEND_BIND, prefix="/victim/far", payload=4000, piece=1200),
        ]
        for producer in producers:
            assert "ready" in producer.stdout.readline()
        router.namehop("route", "add", "/victim/far", f"udp4://{FRIEND_BIND}")
        wanted = {"/victim/near", "/victim/late", "/open/big", "/open/endless", "/silent", "/victim/far"}
        routes = lambda: {route["prefix"]: route["face_id"] for route in router.json("route", "list")}
        wait_until(lambda: wanted <= set(routes()), what="producers registered")
        self.near_face = routes()["/victim/near"]

    def start_victims(self):
        unix, friends = f"unix:{self.router.socket}", self.arena.friends
        common = dict(rate=EXCHANGES_PER_SECOND, lifetime_ms=LIFETIME_MS, seconds=self.seconds)
        return {
            "Unix": self.start(None, "ask", to=unix, prefix="/victim/near/unix", **common),
            "TCP": self.start(friends, "ask", to="tcp:192.0.2.65:6363", prefix="/victim/near/tcp", **common),
            "UDP": self.start(friends, "ask", to="udp:192.0.2.65:6363", prefix="/victim/near/udp", **common),
            "late": self.start(None, "ask", to=unix, prefix="/victim/late", **common),
            "fragments": self.start(None, "ask", to=unix, prefix="/victim/far", **common),
        }

    def start_attacks(self):
        started = {}
        for name in self.attacks:
            plan = PLANS[name]
            rate = int((plan.together if self.together else plan.rate) * self.rates)
            options = {"rate": rate, "seconds": self.seconds + HEAD_START_SECONDS, **plan.options}
            if plan.is_commanding:
                # A face that stays up, so that routes made by the attack are visible afterwards.
                options |= {"locator": self.locator, "face": self.near_face}
            if plan.has_key:
                options |= {"key": self.key, "certificate": self.certificate}
            namespace = self.arena.router if plan.is_local else self.arena.attackers
            started[name] = self.start(namespace, plan.rule or name, **options)
        return started

    def command(self, *arguments):
        """Runs a command of the operator. Records how long it took and why it failed."""
        start = time.monotonic()
        try:
            result = self.router.namehop(*arguments, check=False, timeout=2 * SHORT_COMMAND_SECONDS)
            failure = result.stderr.strip() if result.returncode else ""
        except subprocess.TimeoutExpired:
            failure = "no answer"
        self.commands.append((time.monotonic() - start, " ".join(arguments), failure))

    def ask_http(self):
        """Sends some HTTP requests of the operator. Each must be answered completely; the time depends on the load and is not checked."""
        command = [*self.arena.inside(self.arena.router), sys.executable, "-c", HTTP_REQUESTS]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            self.commands.append((0, "HTTP requests", result.stderr.strip()[-200:]))

    def run(self):
        router = self.router.start()
        try:
            return self._run(router)
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                process.communicate()
            if router.process.poll() is None:
                router.kill()

    def _run(self, router):
        result = SimpleNamespace(peak_bytes=0, sent={}, victims={}, attacks=self.attacks)
        self.start_producers()
        # Baseline for counting the attack packets.
        before = router.json("status")
        attacks = self.start_attacks()
        if attacks:
            time.sleep(HEAD_START_SECONDS)
        victims = self.start_victims()
        local = LocalLoad(router) if self.group else contextlib.nullcontext()
        start, used = time.monotonic(), router.processor_seconds()
        count, until = 0, time.monotonic() + self.seconds
        with local:
            while time.monotonic() < until and router.process.poll() is None:
                self.command("status")
                self.ask_http()
                self.command("route", "add", f"/operator/{count}", f"udp4://{FRIEND_BIND}")
                result.peak_bytes = max(result.peak_bytes, router.resident_bytes())
                count += 1
                time.sleep(0.3)
        result.processor = (router.processor_seconds() - used) / (time.monotonic() - start)
        result.victims = {name: report(process) for name, process in victims.items()}
        result.sent = {name: report(process) for name, process in attacks.items()}
        result.peak_bytes = max(result.peak_bytes, router.resident_bytes())
        result.commands, result.added = self.commands, count
        self.finish(router, result, before)
        return result

    def finish(self, router, result, before):
        """Collects the router's state after the attack and its exit code."""
        result.problem, result.drops, result.routes, result.uncounted = "", {}, set(), 0
        result.counted = sum(result.sent[name].get("packets", 0) for name in self.attacks if PLANS[name].is_counted)
        try:
            wait_until(lambda: self.answered("status"), 8, "the router answers again")
            # Packets in flight and kernel drops are counted within a second or two.
            end = time.monotonic() + 3
            while self.count(router, result, before) > UNCOUNTED * result.counted and time.monotonic() < end:
                time.sleep(0.2)
            result.routes = {route["prefix"] for route in self.answered("route", "list") or []}
        except AssertionError as error:
            result.problem = str(error)
        result.exit_code = router.end()
        result.log = router.log.read_text()

    def count(self, router, result, before):
        """Records drops by name. Returns how many of the attackers' packets are in no counter."""
        after = self.answered("status")
        if not after:
            return 0
        drops = {
            (layer, reason): count - before["drops"][layer].get(reason, 0)
            for layer in after["drops"] for reason, count in after["drops"][layer].items()
        }
        result.drops = {key: count for key, count in drops.items() if count}
        seen = sum(after[f"in_{kind}"] - before[f"in_{kind}"] for kind in ("interests", "data", "nacks"))
        seen += sum(count for (layer, _), count in result.drops.items() if layer != "engine")
        result.uncounted = max(0, result.counted - seen)
        return result.uncounted

    def answered(self, *arguments):
        try:
            reply = self.router.namehop(*arguments, "--json", check=False, timeout=5)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(reply.stdout) if reply.returncode == 0 else None


class LocalLoad:
    """Applications on the router's host that take memory: some request large Data and never read it, one registers routes without end."""

    def __init__(self, router):
        self.router, self.connections = router, []
        self.registering = threading.Thread(target=self.register, daemon=True)

    def __enter__(self):
        for number in range(LOCAL_READERS):
            connection = self.router.connect()
            connection.setblocking(False)
            self.connections.append(connection)
            for name in range(200):
                try:
                    connection.send(interest(f"/open/big/{number}/{name}", nonce=os.urandom(4)))
                except OSError:
                    break
        self.registering.start()
        return self

    def register(self):
        with contextlib.suppress(OSError), self.router.connect() as connection:
            reading = threading.Thread(target=self.read, args=[connection], daemon=True)
            reading.start()
            for number in range(LOCAL_ROUTES):
                connection.sendall(command("rib", "register", register(f"/local/{'x' * 100}/{number}", 0)))

    @staticmethod
    def read(connection):
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()


def report(process):
    """Returns the last line of output of a test program, parsed as JSON."""
    try:
        output, errors = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
    lines = output.splitlines()
    return json.loads(lines[-1]) if process.returncode == 0 and lines else {"failed": errors.strip() or process.returncode}
