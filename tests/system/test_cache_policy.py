"""The cache policy of a running router, and its change at run time."""

import json
import select
import urllib.error
import urllib.request

from applications import connect_application
from conftest import PATIENCE
from packets import data, interest, read_element

CONFIGURATION = """
[content_store]
capacity_packets = {capacity}
policy = "{policy}"
"""


class Cache:
    """A consumer and a producer on the two sides of a router's cache."""

    def __init__(self, router):
        self.router = router
        self.producer, face = connect_application(router)
        self.consumer = router.connect()
        self.asked = 0
        router.namehop("route", "add", "/object", face)

    def ask(self, number):
        """Fetches an object. True if the cache answered."""
        name = f"/object/{number}"
        self.asked += 1
        self.consumer.sendall(interest(name, nonce=self.asked.to_bytes(4, "big")))
        ready, _, _ = select.select([self.producer, self.consumer], [], [], PATIENCE)
        is_hit = self.producer not in ready
        if not is_hit:
            read_element(self.producer)
            self.producer.sendall(data(name, b"x" * 50, freshness=10_000))
        read_element(self.consumer)
        return is_hit

    def policy(self, policy):
        return self.router.json("cs", "config", "--policy", policy)["policy"]

    def counts(self):
        return {entry.pop("policy"): entry for entry in self.router.json("cs", "info")["by_policy"]}


def test_policies_change_while_the_router_runs(make_router):
    router = make_router(CONFIGURATION.format(capacity=100, policy="fifo"))
    cache = Cache(router)
    assert router.json("cs", "info")["policy"] == "fifo"
    assert [cache.ask(number) for number in [1, 1, 2]] == [False, True, False]

    # A policy that admits only objects with three recent requests.
    assert cache.policy("filter:threshold=3") == "filter:threshold=3"
    assert router.json("cs", "info")["policy"] == "filter:threshold=3"
    assert cache.ask(1) and cache.ask(2), "what was there still is"
    assert [cache.ask(3) for _ in range(4)] == [False, False, False, True]
    # The responses to these commands are Data too; they pass through the cache and are requested once.
    counts = cache.counts()
    fifo, filtered = counts["fifo"], counts["filter"]
    assert fifo["hits"] == 1 and fifo["misses"] >= 2 and fifo["insertions"] >= 2 and fifo["rejections"] == 0
    assert filtered["hits"] == 3 and filtered["insertions"] == 1 and filtered["evictions"] == 0
    assert filtered["misses"] >= 3 and filtered["rejections"] >= 2

    metrics = urllib.request.urlopen(f"http://127.0.0.1:{router.metrics}/metrics").read().decode()
    assert 'namehop_cs_policy_total{policy="filter",event="insertion"} 1\n' in metrics
    shown = router.namehop("cs", "info").stdout
    assert "filter:threshold=3" in shown and "REJECTIONS" in shown


def test_a_policy_that_was_chosen_survives_a_restart_and_others_do_not(make_router):
    router = make_router(CONFIGURATION.format(capacity=100, policy="fifo"))
    # A command that changes another setting does not save the policy.
    router.namehop("cs", "config", "--capacity", "50")
    router.stop()
    router.extra = CONFIGURATION.format(capacity=100, policy="sieve")
    router.start()
    assert (router.json("cs", "info")["policy"], router.json("cs", "info")["capacity_packets"]) == ("sieve", 50)
    router.namehop("cs", "config", "--policy", "s3-fifo:small=0.2")
    router.namehop("cs", "config", "--capacity", "60")
    router.stop()
    router.start()
    info = router.json("cs", "info")
    assert (info["policy"], info["capacity_packets"]) == ("s3-fifo:small=0.2", 60)


def test_policies_that_are_not_there_are_refused(make_router):
    router = make_router(CONFIGURATION.format(capacity=100, policy="filter:threshold=3"))
    for policy, reason in [
        ("best", "unknown content store policy 'best'"),
        ("lru:threshold=3", "content store policy 'lru' has no setting 'threshold'"),
    ]:
        refused = router.namehop("cs", "config", "--policy", policy, check=False)
        assert refused.returncode == 2 and reason in refused.stderr
    request = urllib.request.Request(
        f"http://127.0.0.1:{router.metrics}/api/v1/cs",
        json.dumps({"policy": "best"}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {(router.folder / 'state.json.api-token').read_text().strip()}"},
    )
    try:
        urllib.request.urlopen(request)
        raise AssertionError("accepted")
    except urllib.error.HTTPError as error:
        assert error.code == 400 and "unknown content store policy" in error.read().decode()
    assert router.json("cs", "info")["policy"] == "filter:threshold=3"


def test_a_large_cache_changes_its_policy_while_packets_flow(make_router):
    """Every exchange during the changes is answered, by the cache or the producer."""
    router = make_router(CONFIGURATION.format(capacity=20_000, policy="lru"))
    cache = Cache(router)
    count = 3_000
    names = [f"/object/{number}" for number in range(count)]
    for name in names:
        cache.consumer.sendall(interest(name, nonce=b"\x09\x09\x09\x09"))
        read_element(cache.producer)
        cache.producer.sendall(data(name, b"x" * 50, freshness=60_000))
        read_element(cache.consumer)
    entries = router.json("cs", "info")["entries"]
    assert entries >= count
    for turn, policy in enumerate(["arc", "s3-fifo", "w-tinylfu", "priority-fifo", "lru"]):
        changing = router.spawn("cs", "config", "--policy", policy)
        for name in names[:: 10]:
            cache.consumer.sendall(interest(name, nonce=bytes([8, 8, 8, turn])))
            assert read_element(cache.consumer)
        assert changing.wait(30) == 0
        info = router.json("cs", "info")
        assert info["policy"] == policy and info["entries"] >= entries
    router.namehop("cs", "config", "--capacity", "10")
    assert router.json("cs", "info")["entries"] <= 10
