"""Simulated caches make the same decisions as libCacheSim, request by request."""

import json
import random
import struct
import subprocess

import libcachesim
import pytest

from conftest import PROGRAM

CAPACITY = 100
REQUESTS = 20_000


def uniform(names, seed):
    source = random.Random(seed)
    return [source.randrange(names) for _ in range(REQUESTS)]


def skewed(names, seed):
    source = random.Random(seed)
    weights = [(rank + 1) ** -0.8 for rank in range(names)]
    return source.choices(range(names), weights, k=REQUESTS)


def loops(names, seed):
    """Returns requests for names in sequence, with occasional jumps to a random name."""
    source = random.Random(seed)
    requests, place = [], 0
    for _ in range(REQUESTS):
        place = source.randrange(names) if source.random() < 0.01 else (place + 1) % names
        requests.append(place)
    return requests


TRACES = {
    "uniform": uniform(300, 1),
    "skewed": skewed(2000, 2),
    "few": skewed(120, 3),
    "loops": loops(150, 4),
}


def simulate(tmp_path, requests, policy, capacity=CAPACITY):
    trace, hits = tmp_path / "trace.txt", tmp_path / "hits.txt"
    trace.write_text("".join(f"{name}\n" for name in requests))
    command = ["cache", "simulate", "--trace", trace, "--policy", policy, "--capacity", str(capacity), "--hits", hits]
    subprocess.run([PROGRAM, *command], check=True, timeout=60)
    return [line == "1" for line in hits.read_text().split()]


def reference(cache, requests):
    request = libcachesim.Request()
    request.obj_size = 1
    answers = []
    for name in requests:
        request.obj_id = name + 1
        answers.append(cache.get(request))
    return answers


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize(
    "policy, cache",
    [
        ("fifo", libcachesim.FIFO),
        ("lru", libcachesim.LRU),
        ("lfu", libcachesim.LFU),
        ("arc", libcachesim.ARC),
        ("clock", libcachesim.Clock),
        ("sieve", libcachesim.Sieve),
        ("s3-fifo", libcachesim.S3FIFO),
    ],
)
def test_decisions_are_the_same(tmp_path, policy, cache, trace):
    requests = TRACES[trace]
    ours, theirs = simulate(tmp_path, requests, policy), reference(cache(cache_size=CAPACITY), requests)
    differing = [place for place, (our, their) in enumerate(zip(ours, theirs, strict=True)) if our != their]
    assert not differing, f"{len(differing)} of {REQUESTS} differ, the first at {differing[0]}"


def test_random_evictions_hit_as_often(tmp_path):
    requests = TRACES["skewed"]
    ours, theirs = simulate(tmp_path, requests, "random"), reference(libcachesim.Random(cache_size=CAPACITY), requests)
    # Four standard deviations of the difference of two hit counts.
    assert abs(sum(ours) - sum(theirs)) < 4 * (2 * sum(ours)) ** 0.5


def test_a_small_window_with_frequencies_hits_about_as_often(tmp_path):
    """libCacheSim counts only some of the requests and hashes differently, so single decisions differ."""
    requests = TRACES["skewed"]
    ours, theirs = simulate(tmp_path, requests, "w-tinylfu"), reference(libcachesim.WTinyLFU(cache_size=CAPACITY), requests)
    assert abs(sum(ours) - sum(theirs)) < 0.03 * REQUESTS
    assert sum(ours) > sum(simulate(tmp_path, requests, "fifo")) * 1.2


def test_binary_traces_and_the_optimum(tmp_path):
    requests = TRACES["skewed"]
    trace = tmp_path / "trace.oracleGeneral"
    trace.write_bytes(b"".join(struct.pack("<IQIq", time, name, 1, -1) for time, name in enumerate(requests)))
    command = ["cache", "simulate", "--trace", trace, "--policy", "lru,arc", "--capacity", str(CAPACITY), "--optimum", "--json"]
    caches = json.loads(subprocess.run([PROGRAM, *command], check=True, capture_output=True, timeout=60).stdout)["caches"]
    rates = {cache["policy"]: cache["hit_rate"] for cache in caches}
    assert rates["lru"] == sum(simulate(tmp_path, requests, "lru")) / REQUESTS
    assert rates["optimum"] > max(rates["lru"], rates["arc"]) + 0.05


@pytest.mark.parametrize("settings", [[], ["--history", "4000", "--threshold", "3"], ["--history", "4000", "--counters", "65536"]])
def test_the_model_is_close_to_the_simulation(settings):
    command = ["cache", "model", "-N", "100000", "--capacity", "1000", "--compare", "--requests", "1000000", "--json", *settings]
    report = json.loads(subprocess.run([PROGRAM, *command], check=True, capture_output=True, timeout=60).stdout)
    assert abs(report["simulated"]["hit_rate_distance"]) < 0.01
    assert abs(report["simulated"]["insertion_rate_distance"]) < 0.01
    assert report["published"]["hit_rate"] > report["hit_rate"]


def test_mistakes_are_explained(tmp_path):
    damaged = tmp_path / "a.oracleGeneral"
    damaged.write_bytes(b"x" * 25)
    for arguments, reason in [
        (["--trace", damaged, "--capacity", "1"], b"ends within a record"),
        (["--trace", tmp_path / "none", "--capacity", "1"], b"No such file"),
        (["--trace", damaged, "--capacity", "1%"], b"--capacity in percent needs --workload"),
        (["--workload", "web", "--capacity", "1", "--policy", "filter:threshold=0"], b"a number from 1 to 65535"),
    ]:
        done = subprocess.run([PROGRAM, "cache", "simulate", *arguments], capture_output=True, timeout=60)
        assert done.returncode != 0 and reason in done.stderr, done.stderr
