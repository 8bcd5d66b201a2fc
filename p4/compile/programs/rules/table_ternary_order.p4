// Among several constant entries, the first wins.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }

struct headers_t { bytes_t h; }
struct meta_t {  }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        key = { hdr.h.a: ternary; }
        actions = { set; none; }
        default_action = none();
        const entries = {
            0x01 &&& 0x01: set(0x11);
            0x02 &&& 0x02: set(0x22);
        }
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
