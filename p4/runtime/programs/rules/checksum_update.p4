// update_checksum writes the Internet checksum over its data.
header sum_t { bit<16> x; }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { bit<16> x = 0; update_checksum(true, { hdr.h.a, hdr.h.b }, x, HashAlgorithm.csum16); hdr.h.c = x[15:8]; hdr.h.d = x[7:0]; } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
