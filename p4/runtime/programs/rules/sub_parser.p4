// A parser applies another; its results are copied out.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header one_t { bit<8> x; }
struct headers_t { bytes_t h; one_t e; }
struct meta_t {  }
parser Inner(packet_in packet, out one_t e, inout bit<8> mark) {
    state start {
        packet.extract(e);
        mark = 0xAA;
        transition accept;
    }
}
parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    state start {
        packet.extract(hdr.h);
        inner.apply(packet, hdr.e, hdr.h.b);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
    }
}

#include "skeleton/end.p4"
