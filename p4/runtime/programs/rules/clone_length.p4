// An ingress clone is truncated when it is made, an egress clone when it leaves.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> length; }
header bytes_t { bit<8> a; bit<8> b; }

struct headers_t { tag_t tag; bytes_t h; }
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
        if (standard.instance_type == 0) { clone(CloneType.I2E, 9); }
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { 
    apply {
        if (standard.instance_type == 0) {
            clone(CloneType.E2E, 8);
        } else {
            hdr.tag.setValid();
            hdr.tag.length = (bit<8>)standard.packet_length;
        }
    }
}

control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.tag);
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
