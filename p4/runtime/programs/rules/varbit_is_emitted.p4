// A varbit is emitted with the length that it has.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header var_t { bit<8> n; varbit<32> v; }
struct headers_t { bytes_t h; var_t v; }
struct meta_t {  }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.v, (bit<32>)hdr.h.a * 8);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.b = 0xAA;
        hdr.v.n = 0xBB;
    }
}

#include "skeleton/end.p4"
