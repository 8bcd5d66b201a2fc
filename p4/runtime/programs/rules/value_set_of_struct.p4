// A value set of a struct compares all its fields, each as @match says.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }

struct headers_t { bytes_t h; }
struct meta_t { bit<8> x; }
struct known_t {
    bit<8> exact;
    @match(ternary) bit<8> masked;
    @match(range) bit<8> ranged;
}

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    value_set<known_t>(4) known;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b, hdr.h.c) {
            known: found;
            (9, _, _): other;
            default: other;
        }
    }
    state found {
        meta.x = 1;
        transition accept;
    }
    state other {
        meta.x = 2;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.d = meta.x;
    }
}

#include "skeleton/end.p4"
