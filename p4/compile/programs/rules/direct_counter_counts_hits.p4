// A direct counter counts each packet that matches an entry, even if its action does not call count.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }

struct headers_t { bytes_t h; }
struct meta_t { bit<8> x; }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action first() { hdr.h.d = 1; }
    action second() { hdr.h.d = 2; hits.count(); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { first; second; }
        default_action = second();
        counters = hits;
        size = 16;
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
