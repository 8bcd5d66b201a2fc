"""`namehop bench links`: complete short measurements, and cleanup afterwards."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, of_threads, run_namehop, wait_until
from port_links import needs_root
from test_strategies import SDK, compile_strategy

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a router and its load need two CPUs")
SHORT = ["--runs", "1", "--seconds", "1.2s", "--warm-up", "0.1s", "--in-flight", "64"]


def measure(*arguments):
    result = run_namehop("bench", "links", *arguments, *SHORT, "--json")
    report = json.loads(result.stdout)
    placed = report["processors"]
    assert placed["forwarder"] != placed["generator"] and report["payload_bytes"] > 0
    return report["links"]


def check(figures):
    assert figures["exchanges"] > 100 and figures["turns"] == 1, figures
    assert figures["lost"] * 50 < figures["exchanges"], figures
    assert 0 < figures["busy_share"] <= 1.02 and figures["busy_ns"] > 50, figures
    assert 0 < figures["rtt_p50_us"] <= figures["rtt_p99_us"], figures


def test_memif_with_a_strategy_from_a_file(tmp_path):
    file = str(compile_strategy(tmp_path, SDK / "strategies/best-route.c", "best-route"))
    sink, built_in, loaded = measure("--strategy", f"best-route,{file}", "--payload", "4000")
    for figures in (sink, built_in, loaded):
        check(figures)
        assert figures["link"] == "memif"
    assert [figures["strategy"] for figures in (sink, built_in, loaded)] == [None, "best-route", file]
    assert sink["process_ns"] is None and built_in["process_ns"] > built_in["process_kernel_ns"] >= 0


def test_a_sweep_has_all_its_cases_and_a_chart_for_each(tmp_path):
    arguments = ["--sweep", "latency", "--svg", str(tmp_path / "charts"), "--json"]
    report = json.loads(run_namehop("bench", "links", *arguments, *SHORT).stdout)
    (sweep,) = report["sweeps"]
    assert sweep["sweep"] == "latency" and [case["setting"]["matches"] for case in sweep["cases"]] == ["exact", "prefix"]
    for case in sweep["cases"]:
        (rate,) = case["data_per_s"]
        assert rate > 100 and case["lost"] * 50 < rate and not case["shares_processor"], case
        assert 0.4 < case["hit_share"] < 0.6, "half of the Interests are for what is cached"
        assert [way["packets"] > 0 for way in case["latency"]["ways"]] == [True] * 3, case["latency"]
    for name in ("exact", "prefix"):
        assert "<polyline" in (tmp_path / f"charts/links-latency-{name}.svg").read_text()


def test_sweeps_are_known_and_of_one_kind_of_link():
    unknown = run_namehop("bench", "links", "--sweep", "nonesuch", check=False)
    assert unknown.returncode == 2 and "workers, payload, fib, cache, latency" in unknown.stderr
    several = run_namehop("bench", "links", "--sweep", "fib", "--link", "memif,dev", check=False)
    assert several.returncode == 2 and "one kind of link" in several.stderr


@needs_root
def test_network_interfaces_and_a_namespace_of_their_own():
    before = subprocess.run(["ip", "link"], check=True, capture_output=True, text=True).stdout
    rows = measure("--link", "dev,xdp")
    assert [(row["link"], row["strategy"]) for row in rows] == [
        ("dev", None), ("dev", "best-route"), ("xdp", None), ("xdp", "best-route"),
    ]  # fmt: skip
    for row in rows:
        check(row)
    after = subprocess.run(["ip", "link"], check=True, capture_output=True, text=True).stdout
    assert [line.split(":")[1] for line in before.splitlines()[::2]] == [line.split(":")[1] for line in after.splitlines()[::2]]


def test_errors_say_what_to_do():
    wrong = run_namehop("bench", "links", "--strategy", "nonesuch", *SHORT, check=False)
    assert wrong.returncode == 1 and "rejected the strategy nonesuch" in wrong.stderr
    short = run_namehop("bench", "links", "--seconds", "1s", check=False)
    assert short.returncode == 2 and "at least 1.2 s" in short.stderr


def children(process):
    return [child for text in of_threads(process, "children") for child in text.split()]


def test_an_interrupted_measurement_leaves_no_router_behind():
    command = [PROGRAM, "bench", "links", "--runs", "100"]
    bench = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: children(bench), 20, what="a router runs")
        (router,) = children(bench)
        bench.send_signal(signal.SIGTERM)
        bench.communicate(timeout=30)
        assert not Path(f"/proc/{router}").exists()
    finally:
        bench.kill()
