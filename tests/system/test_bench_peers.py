"""`namehop bench peers`: complete short measurements of Namehop against itself, and cleanup afterwards."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, run_namehop, wait_until
from test_bench_links import children

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="forwarders and their load need two CPUs")
SHORT = ["--runs", "1", "--seconds", "0.3s", "--warm-up", "0.1s", "--cache-packets", "1024"]
# Configuration of the same program as a second forwarder, started by a command.
CONFIGURATION = """
[log]
level = "warn"
[faces.unix]
path = "{socket}"
[faces.tcp]
listen = ["127.0.0.1:{port}"]
[faces.udp]
listen = ["127.0.0.1:{port}"]
[faces.websocket]
listen = []
[metrics]
enabled = false
[state]
enabled = false
"""


@pytest.fixture
def by_command(tmp_path):
    """A forwarder as a command line, with placeholders in a configuration file, as for other forwarders."""
    file = tmp_path / "other.toml"
    file.write_text(CONFIGURATION)
    # The shell stays, so that the forwarder is a child of the started process.
    return f"""other=sh -c '{PROGRAM} run --config "$0"; exit $?' {{copy:{file}}}"""


def runs(pid):
    """True if the process runs. A zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def measure(*arguments, check=True):
    result = run_namehop("bench", "peers", *arguments, *SHORT, "--json", check=check)
    return json.loads(result.stdout), result


def test_two_forwarders_take_turns_in_every_case(by_command):
    lists = ["--window", "16,64", "--payload", "100,8000", "--cache", "miss-empty,hit-few,miss-full,hit-full", "--routes", "0,500"]
    report, _ = measure("--forwarder", "namehop", "--forwarder", by_command, "--socket", "unix,tcp,udp", *lists)
    placed = report["processors"]
    assert not set(placed["forwarders"]) & set(placed["generator"])
    cases = report["cases"]
    # The default case, and one case for each further value of each list.
    assert len(cases) == 1 + 2 + 1 + 1 + 3 + 1
    assert [case["routes"] for case in cases] == [0] * 8 + [500]
    for case in cases:
        first, other = case["forwarders"]
        assert (first["name"], other["name"]) == ("namehop", "other")
        assert first["cpu_ratio"] == first["rate_ratio"] == 1.0
        for figures in (first, other):
            assert figures["failure"] is None and figures["turns"] == 1, figures
            assert figures["exchanges"] > 20 and figures["lost"] * 20 < figures["exchanges"], (case, figures)
            # The CPU time of the forwarder. For the second forwarder this is the time of a child process.
            assert figures["cpu_us"] > 0.1 and 0 < figures["forwarder_processors"] < 2, (case, figures)
            assert 0 < figures["rtt_p50_us"] <= figures["rtt_p99_us"] <= figures["rtt_p999_us"]
            assert figures["resident_bytes"] > 1 << 20
            is_hit = case["cache"].startswith("hit")
            assert figures["hit_share"] > 0.95 if is_hit else figures["hit_share"] < 0.05, (case, figures)
            if case["cache"].endswith("full"):
                assert figures["cached_packets"] > 500
            if case["cache"] == "miss-empty":
                assert figures["cached_packets"] <= 64


def test_a_forwarder_that_runs_is_measured_and_is_as_before(make_router):
    router = make_router()
    before = router.json("cs", "info")["capacity_packets"]
    attached = f"running={router.unix_uri}?port={router.tcp}"
    arguments = ["--forwarder", attached, "--socket", "unix,tcp", "--window", "16", "--payload", "100", "--routes", "20"]
    report, _ = measure(*arguments, "--cache", "hit-few")
    (figures,) = report["cases"][0]["forwarders"]
    assert figures["name"] == "running" and figures["cpu_us"] > 0.1 and figures["hit_share"] > 0.95
    after = router.json("cs", "info")
    assert after["capacity_packets"] == before and after["admit"]
    left = lambda: [route for route in router.json("route", "list") if route["prefix"].startswith("/namehop")]
    wait_until(lambda: not left(), what="its routes are gone")


def test_a_table_and_what_it_says_of_the_load():
    arguments = ["--socket", "unix", "--window", "16", "--payload", "100", "--cache", "miss-empty", "--routes", "0"]
    table = run_namehop("bench", "peers", *arguments, *SHORT).stdout
    head, row, *rest = table.splitlines()
    assert head.split()[:6] == ["SOCKET", "WINDOW", "BYTES", "CACHE", "ROUTES", "FORWARDER"]
    assert row.split()[:6] == ["unix", "16", "100", "miss-empty", "0", "namehop"]
    assert "generator" in rest[-1].lower()


def test_errors_say_what_to_do(tmp_path, by_command):
    def refused(*arguments, code=1):
        wrong = run_namehop("bench", "peers", *arguments, *SHORT, check=False)
        assert wrong.returncode == code, wrong
        return wrong.stderr

    assert "must contain {socket}" in refused("--forwarder", "true run")
    assert "cannot be started" in refused("--forwarder", "/nonexistent/forwarder {socket}")
    ended = refused("--forwarder", "sh -c 'echo no licence; exit 3' {socket}")
    assert "did not start" in ended and "no licence" in ended
    assert "not reachable" in refused("--forwarder", f"unix://{tmp_path}/none.sock")
    assert "two forwarders have the name namehop" in refused("--forwarder", "namehop", "--forwarder", "namehop")
    assert "a quote is not closed" in refused("--forwarder", "fw 'x", code=2)
    assert "must be port=NUMBER" in refused("--forwarder", "unix:///x?speed=1", code=2)
    file = tmp_path / "deaf.toml"
    file.write_text(CONFIGURATION.replace('listen = ["127.0.0.1:{port}"]', "listen = []"))
    command = f"{PROGRAM} run --config {{copy:{file}}}"
    for socket in ("tcp", "udp"):
        assert f"has no {socket} listener" in refused("--forwarder", command, "--socket", socket)


def test_one_that_refuses_and_one_that_works(tmp_path):
    """A failure is reported in the figures, and the other forwarders are still measured."""
    file = tmp_path / "strict.toml"
    certificate = tmp_path / "operator.ndncert"
    run_namehop("key", "generate", "/operator", "--key", tmp_path / "operator.key", "--certificate", certificate)
    rule = f'[[management.authorizations]]\ncertificate = "{certificate}"\nmodules = ["faces", "rib", "cs"]\n'
    file.write_text(CONFIGURATION + rule)
    strict = f"strict={PROGRAM} run --config {{copy:{file}}}"
    arguments = ["--socket", "unix", "--window", "16", "--payload", "100", "--cache", "miss-empty", "--routes", "0"]
    report, result = measure("--forwarder", strict, "--forwarder", "namehop", *arguments, check=False)
    assert result.returncode == 1 and "strict rejected its cache settings" in result.stderr
    first, other = report["cases"][0]["forwarders"]
    assert first["turns"] == 0 and "cs/config" in first["failure"]
    assert other["exchanges"] > 20 and other["cpu_ratio"] is None


def test_an_interrupted_measurement_leaves_no_forwarder_behind(by_command):
    bench = subprocess.Popen(
        [PROGRAM, "bench", "peers", "--forwarder", by_command, "--runs", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_until(lambda: children(bench), 20, what="a shell runs")
        (shell,) = children(bench)
        listed = Path(f"/proc/{shell}/task/{shell}/children")
        wait_until(lambda: listed.read_text().split(), 20, what="a forwarder runs")
        (forwarder,) = listed.read_text().split()
        bench.send_signal(signal.SIGTERM)
        bench.communicate(timeout=60)
        assert not runs(forwarder) and not runs(shell)
    finally:
        bench.kill()
