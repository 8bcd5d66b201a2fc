// next extracts one element after the other; last is the one before.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header one_t { bit<8> x; }
struct headers_t { bytes_t h; one_t[3] s; }
struct meta_t {  }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition more;
    }
    state more {
        packet.extract(hdr.s.next);
        transition select(hdr.s.last.x) {
            0 .. 9: more;
            default: accept;
        }
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.s[0].x;
    }
}

#include "skeleton/end.p4"
