"""Many routers start at the same time on a busy host: each answers its first command as soon as clients can find it."""

import os
import socket
import subprocess
import threading
import time

from conftest import PATIENCE, PROGRAM, Router
from packets import command, read_element, register, status

ROUTERS = 12
# Number of processes that only use CPU time, with the same scheduling priority as the routers.
BUSY = 2
# Maximum time in seconds from the router's appearance to the response to its first command. Routing daemons time out after one second. A
# router that need not wait for a CPU takes some milliseconds.
ANSWER_SECONDS = 0.8
# Number of configured routes. Installing them takes longer than ROUTES_SECONDS.
ROUTES, ROUTES_SECONDS = 60_000, 0.25


class Starting:
    """A starting router, and its first responses."""

    def __init__(self, folder, number, extra=""):
        self.router = Router(folder, extra, f"router{number}", workers=1)
        self.router.write_config()
        self.notify_path = self.router.folder / "notify"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(self.notify_path))
        self.notify.setblocking(False)
        self.answers = {}
        self.watching = []

    def start(self):
        environment = {**os.environ, "NOTIFY_SOCKET": str(self.notify_path)}
        with open(self.router.log, "ab") as log:
            self.router.process = subprocess.Popen(
                [PROGRAM, "run", "--config", str(self.router.config)], stdout=log, stderr=log, env=environment, cwd=self.router.folder
            )

    def look(self):
        """Sends a command as soon as the router is visible: once when its socket exists, and once when it notifies the service manager."""
        if "socket" not in self.answers and self.router.socket.exists():
            self.ask("socket")
        if "ready" not in self.answers:
            try:
                if b"READY=1" in self.notify.recv(4096):
                    self.ask("ready")
            except BlockingIOError:
                pass

    def ask(self, seen_by):
        self.answers[seen_by] = None
        # Like the first command of a routing daemon.
        packet = command("rib", "register", register(f"/seen/by/{seen_by}", 0))
        start = time.monotonic()

        def answer():
            while True:
                try:
                    connection = self.router.connect()
                    break
                except ConnectionRefusedError:
                    # The router has called bind, but not yet listen.
                    time.sleep(0.001)
            with connection:
                connection.sendall(packet)
                _, reply, _ = read_element(connection)
            self.answers[seen_by] = (time.monotonic() - start, status(reply)[0])

        self.watching.append(threading.Thread(target=answer))
        self.watching[-1].start()

    def is_seen(self):
        return len(self.answers) == 2


def first_answers(routers, busy=0):
    """Starts the routers at once, with this number of busy processes. Returns the slowest first response, by the sign of readiness."""
    busy = [subprocess.Popen(["bash", "-c", "while :; do :; done"]) for _ in range(busy)]
    try:
        begin = time.monotonic()
        for starting in routers:
            starting.start()
        while not all(starting.is_seen() for starting in routers):
            assert time.monotonic() < begin + PATIENCE, "not all routers were found"
            for starting in routers:
                starting.look()
            time.sleep(0.001)
        for starting in routers:
            for thread in starting.watching:
                thread.join(PATIENCE)
        slowest = {seen_by: max(starting.answers[seen_by][0] for starting in routers) for seen_by in ("socket", "ready")}
        print(f"\nall found after {time.monotonic() - begin:.2f} s; slowest first answer: {slowest}")
        assert all(starting.answers[seen_by][1] == 200 for starting in routers for seen_by in slowest)
        return slowest
    finally:
        for process in busy:
            process.kill()
            process.wait()
        for starting in routers:
            if starting.router.process:
                starting.router.stop()
            starting.notify.close()


def test_routers_that_start_together_answer_their_first_command(tmp_path):
    routers = [Starting(tmp_path, number) for number in range(ROUTERS)]
    slowest = first_answers(routers, BUSY)
    assert max(slowest.values()) < ANSWER_SECONDS, slowest


def test_a_router_with_many_routes_is_found_when_they_are_there(tmp_path):
    route = '[[route]]\nprefix = "/many/{}"\nnexthop = "udp4://127.0.0.1:9"\n'
    routers = [Starting(tmp_path, 0, "".join(route.format(number) for number in range(ROUTES)))]
    slowest = first_answers(routers)
    assert max(slowest.values()) < ROUTES_SECONDS, slowest
