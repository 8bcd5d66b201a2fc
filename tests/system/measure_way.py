"""Finds the code on an Interest's way by coverage: `make interest-way` prints the files with their shares of the instructions.

A router forwards Interests that miss, from one Ethernet face to another, under valgrind's callgrind. Code counts as on the way if the
worker's thread runs it for each Interest and not while none arrives, or if docs/architecture.md names its file: the poll iteration runs
in both cases.
"""

import re
import subprocess
import sys
import time
from collections import Counter

from conftest import ROOT
from packets import interest
from port_links import ETHERTYPE, link, needs_root, ports  # noqa: F401

pytestmark = needs_root

INTERESTS = 10
IDLE_SECONDS = 3
WORKER = "router/worker/src/turn.rs"
# Addresses of the two peers, which exist only in frames.
CONSUMER, PRODUCER = "02:00:00:00:00:01", "02:00:00:00:00:02"
WORKSPACE = re.compile(r"(?:^|/)((?:core|io|router)/[a-z0-9-]+/src/.*\.rs)$")
# Sends each Interest of its arguments to the router and waits until it has come back for the producer.
PEERS = f"""
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons({ETHERTYPE}))
link.bind(("veth1", {ETHERTYPE}))
link.settimeout(20)
router, *interests = sys.argv[1:]
mac = lambda text: bytes.fromhex(text.replace(":", ""))
for packet in map(bytes.fromhex, interests):
    link.send(mac(router) + mac("{CONSUMER}") + bytes.fromhex("{ETHERTYPE:04x}") + packet)
    while True:
        frame = link.recv(2048)
        # The router puts a link header before the Interest and changes its HopLimit, if any.
        if frame[:6] == mac("{PRODUCER}") and packet in frame:
            break
"""


def profile(path):
    """Returns the reason of a dump by callgrind, and the instructions of each file of the workspace."""
    files, reason, names, current, is_call = Counter(), "", {}, None, False
    for line in path.read_text().splitlines():
        key, _, value = line.partition("=")
        if line.startswith("desc: Trigger: dump "):
            reason = line.rpartition(" ")[2]
        elif key in ("fl", "fi", "fe", "cfi", "cfl"):
            number, _, name = value.partition(" ")
            found = WORKSPACE.search(names.setdefault(number, name))
            if not key.startswith("c"):
                current = found[1] if found else None
        elif key == "calls":
            # The next line has the costs of the called function.
            is_call = True
        elif line and line[0] in "+-*0123456789":
            if current and not is_call:
                files[current] += int(line.split()[1])
            is_call = False
    return reason, files


def measured(router, link):
    """Returns the profiles of the worker's thread, idle and forwarding."""

    def control(*arguments):
        subprocess.run(["callgrind_control", *arguments, str(router.process.pid)], check=True, capture_output=True)

    control("-i", "on")
    time.sleep(IDLE_SECONDS)
    control("-d", "idle")
    forward(link, "measured", INTERESTS)
    control("-d", "busy")
    control("-i", "off")
    by_thread = {}
    for path in router.folder.glob("callgrind.out.*-*"):
        reason, files = profile(path)
        by_thread.setdefault(path.name.rpartition("-")[2], {})[reason] = files
    [worker] = [thread for thread in by_thread.values() if WORKER in thread.get("busy", {})]
    return worker.get("idle", Counter()), worker["busy"]


def forward(link, name, count):
    """Sends Interests through the router and waits for them."""
    packets = [interest(f"/way/of/an/interest/{name}/{number}").hex() for number in range(count)]
    subprocess.run([*link.inside(1), sys.executable, "-c", PEERS, link.address(0), *packets], check=True)


def documented():
    section = (ROOT / "docs/architecture.md").read_text().split("## An Interest's way")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")]
    return [file for row in rows for file in re.findall(r"`([^`]+\.rs)`", row.split("|")[3])]


def test_way(make_router, link):
    router = make_router(ports(0, "[[port]]", f'uri = "{link.local(0)}"'), name="router", start=False)
    callgrind = ["--tool=callgrind", "--instr-atstart=no", "--dump-line=yes", "--separate-threads=yes"]
    router.prefix = [*link.inside(0), "valgrind", *callgrind, f"--callgrind-out-file={router.folder}/callgrind.out.%p"]
    router.start()
    for mac in (CONSUMER, PRODUCER):
        router.namehop("face", "create", f"ether://[{mac}]", "--local", link.local(0), "--persistency", "permanent")
    router.namehop("route", "add", "/way", f"ether://[{PRODUCER}]")
    forward(link, "before", INTERESTS)
    idle, busy = measured(router, link)
    table = [file for file in busy if file.endswith(tuple(documented()))]
    assert len(table) == len(documented()), "every documented file must run"
    way = {file: count for file, count in busy.items() if file in table or file not in idle and count >= INTERESTS}
    total, lines = sum(way.values()), sum(len((ROOT / file).read_text().splitlines()) for file in way)
    print(f"\n{len(way)} files with {lines} lines run on the way, {total / INTERESTS:.0f} instructions for an Interest.")
    print(f"The {len(table)} files of docs/architecture.md run {sum(way[file] for file in table) / total:.0%} of the instructions.\n")
    for file, count in sorted(way.items(), key=lambda item: -item[1]):
        print(f"{count / total:6.1%}  {'documented' if file in table else '':11} {file}")
