// An error in a sub-parser ends the outer parser too.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header one_t { bit<8> x; }
struct headers_t { bytes_t h; one_t e; }
struct meta_t { bit<8> x; }
parser Inner(packet_in packet, out one_t e) {
    state start {
        packet.extract(e);
        transition accept;
    }
}
parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    state start {
        packet.extract(hdr.h);
        inner.apply(packet, hdr.e);
        meta.x = 7;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.PacketTooShort) { hdr.h.d = 1; }
        hdr.h.c = meta.x;
    }
}

#include "skeleton/end.p4"
