"""Flow rules (rte_flow) that steer a sender's frames to one receive queue.

The only device here with a driver that supports them is DPDK's TAP interface, which passes the rules to the guest's kernel.
"""

import re

import pytest

CARDS = []
MODULES = "sch_multiq sch_ingress cls_flower act_skbedit act_gact"


@pytest.fixture(scope="module")
def steps(guest):
    guest.run(f"modprobe -a tun {MODULES}")
    text = guest.run("steering 2>&1")
    print(text)
    return dict(re.findall(r"^(.*?): (.*)$", text, re.MULTILINE))


def queue_of(counts):
    """Returns the one queue that received all frames."""
    counts = [int(count) for count in re.findall(r"\d+", counts)]
    assert sorted(counts) == [0, 0, 0, 20], counts
    return counts.index(20)


def test_senders_of_ethernet_frames_have_different_queues(steps):
    assert steps["queues"] == "4" and "refused" not in steps, steps
    assert steps["places"] == "[Some(0), Some(1), Some(2), Some(3), Some(0)]", "the queue with fewest comes next"
    assert [queue_of(steps[f"ethernet {sender}"]) for sender in range(1, 5)] == [0, 1, 2, 3]


def test_datagrams_are_left_to_a_driver_that_spreads_them(steps):
    assert steps["spread by the driver"] == "Some(None)" and sum(map(int, re.findall(r"\d+", steps["udp"]))) == 20


def test_datagrams_are_steered_where_the_driver_does_not_spread_them(steps):
    # Five Ethernet senders were added earlier, two of them to the first queue.
    found = {step: queue_of(counts) for step, counts in steps.items() if re.match(r"udp \d+ to", step)}
    assert found == {"udp 7001 to Ok(Some(1))": 1, "udp 7002 to Ok(Some(2))": 2, "udp 7003 to Ok(Some(3))": 3}, steps


def test_a_released_sender_is_as_others(steps):
    assert sum(map(int, re.findall(r"\d+", steps["released"]))) == 20, "no frame is lost"
