"""What consumers receive while the next hop of their Interests fails and recovers."""

import json
import time

from conftest import PATIENCE, wait_until

INTERVAL_MS = 20
# Additional lost Interests allowed on a busy host, until the router detects the failure.
MARGIN = 2
# Seconds within which the router learns of a failure that the kernel reports.
KNOWN_S = 0.2


def start_pings(router, count):
    arguments = ["ping", "/x", "--count", str(count), "--interval", f"{INTERVAL_MS}ms", "--timeout", "1s", "--json"]
    return router.spawn(*arguments, text=True)


def result(pings):
    return json.loads(pings.communicate(timeout=PATIENCE)[0])


def ping(router, count=20):
    return result(start_pings(router, count))


def is_up(router, face):
    return router.json("face", "show", face)["is_up"]


def sent_interests(router, face):
    return router.json("face", "show", face)["out_interests"]


def most_lost(known_s):
    return int(known_s * 1000) // INTERVAL_MS + MARGIN


def holds_with_a_second_next_hop(near, face, second, cut, mend, known_s=KNOWN_S):
    """Cuts the cheaper next hop while an application sends Interests. Traffic moves to the other next hop, and back after the repair."""
    near.namehop("route", "add", "/x", face, "--cost", "1")
    near.namehop("route", "add", "/x", second, "--cost", "10")
    assert ping(near)["received"] == 20
    count = 100 + most_lost(known_s)
    pings = start_pings(near, count)
    time.sleep(0.6)
    cut()
    report = result(pings)
    assert report["received"] >= count - most_lost(known_s), report
    assert not is_up(near, face)
    assert ping(near)["received"] == 20, "nothing is lost once it is known"
    mend()

    def is_used_again():
        before = sent_interests(near, face)
        return ping(near, 5)["received"] == 5 and sent_interests(near, face) > before and is_up(near, face)

    wait_until(is_used_again, what="the first next hop is used again")


def holds_without_another(near, face, second, cut, mend, known_s=KNOWN_S):
    """Cuts the only next hop. Consumers get Nacks, and Data again after the repair."""
    wait_until(lambda: ping(near, 5)["received"] == 5, what="the link works")
    near.namehop("route", "remove", "/x", second)
    count = 60 + most_lost(known_s)
    pings = start_pings(near, count)
    time.sleep(0.4)
    cut()
    report = result(pings)
    # Interests after the cut must not wait for their lifetime to expire.
    assert report["nacks"] >= 30 and report["received"] + report["nacks"] >= count - most_lost(known_s), report
    mend()
    wait_until(lambda: ping(near, 5)["received"] == 5, what="the only next hop is used again")
