"""The tutorial of docs/p4.md, word by word: writes its files, runs its commands, and checks their output."""

import os
import re
import shutil
import subprocess
import sys

from conftest import PATIENCE, PROGRAM, ROOT
from port_links import needs_root

pytestmark = needs_root

TITLE = "## From an empty file to a router"
# Files of the tutorial, by the language of their code blocks.
FILES = {"p4": "router.p4", "stf": "router.stf"}

# A replacement for hosts without ping: ping -c COUNT [-W SECONDS] ADDRESS.
PING = """
import socket, struct, sys, time
options, count, patience = sys.argv[1:-1], 1, 10.0
for name, value in zip(options[::2], options[1::2]):
    count, patience = (int(value), patience) if name == "-c" else (count, float(value))
echo = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
echo.settimeout(patience)
received = 0
for number in range(count):
    body = struct.pack("!HH", 7, number) + bytes(56)
    total = sum(struct.unpack("!30H", body)) + 0x0800
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    echo.sendto(struct.pack("!BBH", 8, 0, total ^ 0xFFFF) + body, (sys.argv[-1], 0))
    try:
        while True:
            answer = echo.recv(2048)[20:]
            if answer[0] == 0 and struct.unpack("!HH", answer[4:8]) == (7, number):
                received += 1
                break
    except TimeoutError:
        pass
lost = 100 * (count - received) // count
print(f"{count} packets transmitted, {received} received, {lost}% packet loss")
sys.exit(0 if received else 1)
"""


def blocks():
    """Returns language and text of each code block of the tutorial."""
    page = (ROOT / "docs/p4.md").read_text()
    tutorial = page.split(f"\n{TITLE}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)


def test_the_tutorial_does_what_it_says(tmp_path):
    commands, expected = [], []
    for kind, text in blocks():
        if kind in FILES:
            (tmp_path / FILES[kind]).write_text(text)
        elif kind == "text" and text.startswith("routes "):
            (tmp_path / "routes.txt").write_text(text)
        elif kind == "console":
            for line in text.splitlines():
                (commands if line.startswith("$ ") else expected).append(line.removeprefix("$ "))
    # Background jobs end with the script, on success and on failure.
    script = ["set -eum", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for command in commands:
        script.append(command)
        if command.endswith("&"):
            # A reader takes longer than this to type the next command.
            script.append("until [ -S router.sock ]; do sleep 0.05; done")
    path = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
    if not shutil.which("ping"):
        stand_in = tmp_path / "bin" / "ping"
        stand_in.parent.mkdir()
        stand_in.write_text(f"#!{sys.executable}\n{PING}")
        stand_in.chmod(0o755)
        path = f"{stand_in.parent}:{path}"
    try:
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
        )
    finally:
        # Clean up even after a failure.
        for name in ["p4west", "p4east"]:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert len(expected) >= 8
    for line in expected:
        assert line in said, f"'{line}' is not in:\n{said}"
