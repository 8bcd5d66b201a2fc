"""namehop latency: the time that sampled packets spend in the router."""

import json
import re
import urllib.request

import pytest
from applications import published
from conftest import wait_until
from test_http_api import change, get

# Segment size of `namehop put`.
SEGMENT_BYTES = 8000


def ways_of(view):
    return {way["way"]: way for way in view["ways"]}


def measured(router):
    """Returns the measurements, which are at most a second old."""
    return ways_of(router.json("latency"))


def object_of(tmp_path, segments):
    file = tmp_path / "object"
    file.write_bytes(bytes(segments * SEGMENT_BYTES))
    return file


@pytest.mark.parametrize("workers", [1, 2])
def test_packets_are_measured_by_what_became_of_them(router, tmp_path, workers):
    off = router.namehop("latency", check=False)
    assert off.returncode == 1 and "namehop latency --sample 1024" in off.stderr
    assert get(router, "/latency") == router.json("latency") == {**router.json("latency"), "one_in": 0, "seconds": 0.0}

    with published(router, "/measured", object_of(tmp_path, 25)):
        router.namehop("latency", "--sample", "1")
        router.namehop("cat", "/measured")
        router.namehop("cat", "/measured")
        wait_until(lambda: measured(router)["cs_hit"]["packets"] >= 25)
    ways = measured(router)
    for way in ("cs_miss", "cs_hit", "data"):
        times = ways[way]
        # Each segment came once from the producer and once from the cache.
        assert times["packets"] >= 25, (way, times)
        assert 0 < times["p50_us"] <= times["p90_us"] <= times["p99_us"] <= times["p999_us"] <= times["max_us"] < 4.3e6
        assert sum(step["packets"] for step in times["distribution"]) == times["packets"]
        limits = [step["up_to_us"] for step in times["distribution"]]
        assert limits == sorted(limits) and limits[-1] == times["max_us"]
        assert limits[0] <= times["mean_us"] <= limits[-1]

    text = router.namehop("latency").stdout
    assert "one in 1 packets" in text and "Interest, cache hit" in text
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{router.metrics}/metrics", timeout=10).read().decode()
    assert re.search(r"^namehop_latency_sample 1\.0$", metrics, re.MULTILINE)
    for way, times in ways.items():
        count = re.search(rf'^namehop_latency_seconds_count{{way="{way}"}} (\d+)', metrics, re.MULTILINE)
        bucket = re.search(rf'^namehop_latency_seconds_bucket{{.*\+Inf.*way="{way}".*}} (\d+)|'
                           rf'^namehop_latency_seconds_bucket{{way="{way}".*\+Inf.*}} (\d+)', metrics, re.MULTILINE)
        everything = bucket[1] or bucket[2]
        assert int(count[1]) == int(everything) >= times["packets"]

    router.namehop("latency", "--sample", "0")
    wait_until(lambda: router.json("latency")["one_in"] == 0)


def test_a_sample_is_as_large_as_was_asked_for(make_router, tmp_path):
    router = make_router("[metrics]\nlatency_sample = 4\n")
    assert router.json("latency")["one_in"] == 4
    with published(router, "/sampled", object_of(tmp_path, 1000)):
        router.namehop("cat", "/sampled")
        wait_until(lambda: measured(router)["data"]["packets"] > 150)
    # One in four of 1000 Interests and of 1000 Data: 250 each, with a standard deviation below 20.
    for way in ("cs_miss", "data"):
        assert 150 < measured(router)[way]["packets"] < 350, way


def test_watching_shows_what_was_added(router, tmp_path):
    router.namehop("latency", "--sample", "1")
    watching = router.spawn("latency", "--watch", "--interval", "1.2s", "--json", text=True)
    assert watching.stderr.readline().startswith("updating every ")
    with published(router, "/watched", object_of(tmp_path, 20)):
        router.namehop("cat", "/watched")
    seen = 0
    for line in watching.stdout:
        view = json.loads(line)
        assert 0.1 <= view["seconds"] < 10
        seen += ways_of(view)["data"]["packets"]
        if seen >= 20:
            break
    watching.terminate()
    watching.wait(timeout=10)
    refused = router.namehop("latency", "--watch", "--interval", "1s", check=False)
    assert refused.returncode == 2 and "1.1s" in refused.stderr


def test_it_is_switched_over_http(router):
    assert change(router, "POST", "/latency", {"one_in": 16})["one_in"] == 16
    assert get(router, "/latency")["one_in"] == 16
    assert change(router, "POST", "/latency", {"one_in": 0})["one_in"] == 0
