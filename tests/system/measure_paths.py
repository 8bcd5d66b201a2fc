"""Measures `namehop cat` over many kinds of paths, made by `namehop traffic relay`. `make path-table` prints the table of
docs/benchmarks.md.

The environment variables RATES (Mbit/s), DELAYS (ms, round trip), SEGMENTS (bytes), LOSSES (%, each way) and DURATION (s) choose the paths
and the time for each. The relay's queue holds one bandwidth-delay product. Queues for fewer than two segments are skipped.
"""

import json
import os
import subprocess
from contextlib import ExitStack
from itertools import product

from applications import published
from conftest import PROGRAM
from test_bad_path import NO_CACHE, relayed

# Bytes of name, signature and link header of a segment.
OVERHEAD = 115
FETCHES = (1, 2)


def chosen(name, default):
    return [int(number) for number in os.environ.get(name, default).split()]


SECONDS = chosen("DURATION", "10")[0]


def measure(near, far, content, mbit, ms, segment, fetches, loss):
    """Returns the used share of the line in %, the median round-trip time relative to that of a single segment, the Data lost in the queue
    in %, and the used share of each fetch in %.
    """
    data = segment + OVERHEAD
    content.write_bytes(os.urandom(mbit * 125_000 * SECONDS // fetches))
    limits = ["--rate", f"{mbit}Mbit", "--delay", f"{ms / 2}ms", "--queue", str(mbit * 125 * ms), "--loss", f"{loss}%"]
    names = [f"/object/{number}" for number in range(fetches)]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(published(far, name, content, "--segment-size", str(segment)))
        reports = stack.enter_context(relayed(near, far, *limits))
        command = [PROGRAM, "cat", "--transport", near.unix_uri, "--output", "/dev/null", "--json"]
        running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in names]
        results = [json.loads(process.communicate()[1]) for process in running]
    back = reports[0]["back"]
    assert back["overrun"] == reports[0]["forth"]["overrun"] == 0, "the relay was not fast enough"
    of_line = (1 + OVERHEAD / segment) / mbit / 1e4
    shares = [result["goodput_bit_per_s"] * of_line for result in results]
    content_bits = sum(result["bytes"] for result in results) * 8
    line = content_bits / max(result["elapsed_s"] for result in results) * of_line
    alone_ms = ms + data * 8 / mbit / 1000
    delay = max(result["rtt_p50_ms"] for result in results) / alone_ms
    return line, delay, back["queue_full"] * 100 / back["received"], shares


def test_table(make_router, tmp_path):
    near, far = make_router(NO_CACHE, name="near"), make_router(NO_CACHE, name="far")
    content = tmp_path / "content"
    print("\n| Mbit/s | Round trip | Segment | Fetches | Loss | Line used | Each | Median round trip | Lost in the queue |")
    print("|---|---|---|---|---|---|---|---|---|")
    choices = [chosen("RATES", "2 5 20 100 1000"), chosen("DELAYS", "20 60 100"), chosen("SEGMENTS", "1300 8000"), FETCHES, chosen("LOSSES", "0 1")]
    for mbit, ms, segment, fetches, loss in product(*choices):
        if mbit * 125 * ms < 2 * (segment + OVERHEAD):
            continue
        line, delay, lost, shares = measure(near, far, content, mbit, ms, segment, fetches, loss)
        each = ", ".join(f"{share:.0f} %" for share in shares)
        print(f"| {mbit} | {ms} ms | {segment} | {fetches} | {loss} % | {line:.1f} % | {each} | {delay:.2f} | {lost:.2f} % |", flush=True)
