// The fields of the given field list keep their values.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }

struct headers_t { bytes_t h; }
struct meta_t { @field_list(1) bit<8> x; bit<8> y; }

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
        if (standard.instance_type == 6) { hdr.h.c = meta.x; hdr.h.d = meta.y; } else { meta.x = 5; meta.y = 6; resubmit_preserving_field_list(1); }
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
