"""State of compiled P4 programs beside their tables, while packets flow: registers, meters and digests."""

import json
import os
import time

import pytest
from conftest import wait_until
from port_links import needs_root
from test_p4_run import Switch, SwitchedLink, hosts

pytestmark = needs_root

# Forwards frames between two ports, limited by a meter: green frames pass, others are dropped and counted by color. A digest reports the
# first frame of each host, and a register holds the length of the last frame.
METERING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { }
struct seen_t { bit<48> address; bit<9> port; }
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Metering(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    meter(2, MeterType.packets) limits;
    counter(3, CounterType.packets) colors;
    register<bit<48>>(2) known;
    register<bit<32>>(2) lengths;
    apply {
        bit<32> port = (bit<32>)standard.ingress_port;
        bit<48> before;
        bit<2> color;
        known.read(before, port);
        if (before != hdr.ethernet.source) {
            known.write(port, hdr.ethernet.source);
            digest<seen_t>(1, { hdr.ethernet.source, standard.ingress_port });
        }
        lengths.write(port, standard.packet_length);
        standard.egress_spec = standard.ingress_port ^ 1;
        if (port == 0) {
            limits.execute_meter(port, color);
            colors.count((bit<32>)color);
            if (color != V1MODEL_METER_COLOR_GREEN) { mark_to_drop(standard); }
        }
    }
}
control MeteringEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), Metering(), MeteringEgress(), Update(), Deparse()) main;
"""

COMMITTED, PEAK, BURST = 200, 500, 20
# Relative tolerance of the rates. The clocks of the test and of the switch are read at slightly different times.
TOLERANCE = 0.15
MEASURED_SECONDS = 3


@pytest.fixture
def link():
    with SwitchedLink(f"p4s{os.getpid()}") as link:
        yield link


def colors(switch):
    """Returns the current time and the number of packets of each color."""
    cells = json.loads(switch.ask("counter", "read", "colors", "--json").stdout)["cells"]
    return time.monotonic(), {cell["index"]: cell["packets"] for cell in cells}


def cells(switch, *arguments):
    return json.loads(switch.ask(*arguments, "--json").stdout)["cells"]


def test_meters_limit_what_flows_and_reports_come_once(link, tmp_path):
    with Switch(tmp_path, METERING, link) as switch, hosts(link) as both:
        for host in both:
            host.ask("start")
        wait_until(lambda: all(all(host.ask("came")) for host in both), what="datagrams flow")
        assert list(colors(switch)[1]) == [0], "an unconfigured meter returns green"
        rates = ["--cir", COMMITTED, "--cburst", BURST, "--pir", PEAK, "--pburst", BURST]
        switch.ask("meter", "set", "limits", "0", *map(str, rates))
        time.sleep(1)
        (begin, first), _ = colors(switch), time.sleep(MEASURED_SECONDS)
        end, last = colors(switch)
        seconds = end - begin
        rate = [(last.get(color, 0) - first.get(color, 0)) / seconds for color in range(3)]
        assert sum(rate) > 2 * PEAK, "more is sent than may pass"
        assert rate[0] == pytest.approx(COMMITTED, rel=TOLERANCE), rate
        assert rate[1] == pytest.approx(PEAK - COMMITTED, rel=TOLERANCE), rate
        (cell,) = cells(switch, "meter", "read", "limits")
        assert cell["rates"] == {
            "committed_rate": COMMITTED, "committed_burst": BURST, "peak_rate": PEAK, "peak_burst": BURST
        }  # fmt: skip
        switch.ask("meter", "reset", "limits")
        _, reset = colors(switch)
        wait_until(lambda: colors(switch)[1][0] > reset[0] + 500, what="all are green again")
        after = colors(switch)[1]
        assert (after[1], after[2]) == (reset[1], reset[2])
        for host in both:
            host.ask("stop")
        lines = [json.loads(line) for line in switch.ask("digest", "--json").stdout.splitlines()]
        expected = [
            {"digest": "seen_t", "value": {"address": hex(0x0201 << 32 | end), "port": hex(end)}} for end in (0, 1)
        ]
        assert sorted(lines, key=lambda line: line["value"]["port"]) == expected, "each host is reported once"
        known = {cell["index"]: cell["value"] for cell in cells(switch, "register", "read", "known")}
        assert known == {end: hex(0x0201 << 32 | end) for end in (0, 1)}
        # A host is reported again after its register cell was reset.
        switch.ask("register", "reset", "known", "1")
        both[1].ask("start")
        again = json.loads(switch.ask("digest", "--count", "1", "--json").stdout)
        assert again == expected[1]
        both[1].ask("stop")
        (length,) = cells(switch, "register", "read", "lengths", "1")
        assert 42 <= int(length["value"], 16) < 1600
        (report,) = switch.end()
    assert report["lost"] == 0
