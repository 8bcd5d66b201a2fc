// A header that could not be extracted stays invalid.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header one_t { bit<8> x; }
struct headers_t { bytes_t h; one_t e; }
struct meta_t {  }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.e);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.e.isValid() ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
