// Extracting into a union makes that header the valid one.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header one_t { bit<8> x; }
header two_t { bit<16> x; }
header_union either_t { one_t one; two_t two; }
struct headers_t { bytes_t h; either_t u; }
struct meta_t {  }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) {
            1: one;
            2: two;
        }
    }
    state one {
        packet.extract(hdr.u.one);
        transition accept;
    }
    state two {
        packet.extract(hdr.u.two);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.u.two.isValid() ? 8w2 : 1;
    }
}

#include "skeleton/end.p4"
