#!/usr/bin/env python3
"""Runs the tests of all crates. `make unit-test` runs it.

Cargo runs one test executable after the other, and most of them spend part of their time waiting for timers and sockets. This script
lets cargo build the executables, and runs one more of them than there are CPUs in parallel, the longest first. So the CPUs are busy while
one executable waits. The documentation examples run beside them.
The script also runs slow tests, which `cargo test` ignores. It prints the output of an executable only if that failed. It passes its
arguments to each executable: `scripts/unit-tests.py some::test`.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

CARGO = ["cargo", "test", "--workspace", "--locked"]
DOCUMENTATION = "examples in the documentation"
# The longest executables, which start first. The others take seconds.
LONGEST = [
    DOCUMENTATION,
    "namehop-p4-runtime lib",
    "namehop-face socket_reachability",
    "namehop-traffic lib",
    "namehop-face lib",
    "namehop-p4 run",
    "namehop-bench lib",
    "namehop-fuzz-checks deterministic",
    "namehop-reproduce lib",
    "namehop-lab command",
]
COUNTS = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.MULTILINE)


def executables():
    """Builds all test executables with cargo. Returns name, path and package folder of each."""
    build = subprocess.Popen([*CARGO, "--no-run", "--message-format=json-render-diagnostics"], stdout=subprocess.PIPE, text=True)
    found = []
    for line in build.stdout:
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
            continue
        target, folder = message["target"], Path(message["manifest_path"]).parent
        package = re.search(r'^name = "(.+)"', (folder / "Cargo.toml").read_text(), re.MULTILINE)[1]
        name = target["name"] if target["kind"] == ["test"] else target["kind"][0]
        found.append((f"{package} {name}", message["executable"], folder))
    if build.wait() != 0:
        sys.exit(build.returncode)
    return found


def run(name, command, folder):
    """Runs one executable. Returns its name, exit code, seconds and output."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        code = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT).returncode
        output.seek(0)
        return name, code, time.monotonic() - began, output.read()


def main():
    # With the default action, Ctrl-C ends the script at once. The terminal also interrupts the other processes of its group.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = ["--include-ignored", *sys.argv[1:]]
    jobs = [(name, [path, *arguments], folder) for name, path, folder in executables()]
    jobs.append((DOCUMENTATION, [*CARGO, "--doc", "--", *arguments], Path.cwd()))
    missing = set(LONGEST) - {name for name, _, _ in jobs}
    assert not missing, f"LONGEST names what is not there: {', '.join(missing)}"
    jobs.sort(key=lambda job: LONGEST.index(job[0]) if job[0] in LONGEST else len(LONGEST))
    passed = failed = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        for done in as_completed([pool.submit(run, *job) for job in jobs]):
            name, code, seconds, output = done.result()
            counts = [(int(good), int(bad)) for good, bad in COUNTS.findall(output)]
            good, bad = sum(good for good, _ in counts), sum(bad for _, bad in counts)
            # An executable that crashed may have printed no result.
            bad = max(bad, int(code != 0))
            passed, failed = passed + good, failed + bad
            print(f"{'FAILED' if bad else 'ok'}  {name}: {good} passed, {seconds:.1f} s", flush=True)
            if bad:
                print(output, flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
