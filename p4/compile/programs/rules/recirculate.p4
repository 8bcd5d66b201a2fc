// A recirculated packet comes in again as it was sent.
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
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.c + 1;
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { if (standard.instance_type == 0) { recirculate_preserving_field_list(0); } } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
