"""Memory use of an idle router, with and without free huge pages."""

import os
import re
import time
from pathlib import Path

import pytest
from conftest import PROGRAM

NR_HUGEPAGES = Path("/proc/sys/vm/nr_hugepages")
# Enough huge pages for all tables of a router with default settings.
PAGES = 500
# Maximum memory in kB: anonymous memory, and total memory of a fully optimised program.
OWN_KB, WHOLE_KB = 12_000, 25_000
# A separate thread prepares the tables and ends within this time.
SETTLED_SECONDS = 1.5
# Number of commands at an otherwise idle router.
COMMANDS = 10


def footprint(router):
    """Returns the resident memory in kB: total, and anonymous. Both include huge pages, which the kernel's sums omit."""
    text = Path(f"/proc/{router.process.pid}/smaps_rollup").read_text()
    kilobytes = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    huge = kilobytes["Private_Hugetlb"] + kilobytes["Shared_Hugetlb"]
    return kilobytes["Rss"] + huge, kilobytes["Anonymous"] + huge


@pytest.fixture
def huge_pages():
    """Reserves huge pages, and restores the old number at the end."""
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
