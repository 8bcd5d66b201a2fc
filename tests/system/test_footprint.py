"""What a router with nothing to do takes of memory, with and without free huge pages."""

import os
import re
import time
from pathlib import Path

import pytest
from conftest import PROGRAM

NR_HUGEPAGES = Path("/proc/sys/vm/nr_hugepages")
# Enough for all tables of a router with default settings.
PAGES = 500
# Most memory besides the program itself, in kB, and with it where the program is optimised as a whole.
OWN_KB, WHOLE_KB = 12_000, 25_000
# Tables are made ready by a thread of their own, which ends that within a moment.
SETTLED_SECONDS = 1.5
# Commands that an operator may give at a router which does nothing else.
COMMANDS = 10


def footprint(router):
    """kB in use: all, and without what comes from files. Huge pages that were set aside are not in the kernel's sum, and in ours."""
    text = Path(f"/proc/{router.process.pid}/smaps_rollup").read_text()
    kilobytes = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    huge = kilobytes["Private_Hugetlb"] + kilobytes["Shared_Hugetlb"]
    return kilobytes["Rss"] + huge, kilobytes["Anonymous"] + huge


@pytest.fixture
def huge_pages():
    """Sets huge pages aside, and puts back how many there were."""
    if os.geteuid() != 0:
        pytest.skip("setting huge pages aside needs root")
    before = NR_HUGEPAGES.read_text()
    NR_HUGEPAGES.write_text(str(int(before) + PAGES))
    try:
        if int(NR_HUGEPAGES.read_text()) < int(before) + PAGES:
            pytest.skip(f"the system has no memory for {PAGES} huge pages in one piece each")
        yield
    finally:
        NR_HUGEPAGES.write_text(before)


def check(make_router):
    router = make_router()
    time.sleep(SETTLED_SECONDS)
    whole, own = footprint(router)
    for _ in range(COMMANDS):
        router.namehop("status")
    print(f"\n{whole} kB, {own} kB of them not of files; after {COMMANDS} commands {footprint(router)}")
    assert own <= OWN_KB
    if Path(PROGRAM).parent.name in ("release", "quick"):
        assert whole <= WHOLE_KB
    return router


def test_without_huge_pages_that_were_set_aside(make_router):
    check(make_router)


def test_with_free_huge_pages(make_router, huge_pages):
    router = check(make_router)
    assert "2 MiB pages: " in router.log.read_text(), "tables have pages of the pool, which they take when they fill"
