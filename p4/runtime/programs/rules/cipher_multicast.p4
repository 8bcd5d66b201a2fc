// Each copy has its own payload.
#include <core.p4>
#include <v1model.p4>
#include <namehop.p4>

header bytes_t { bit<8> a; bit<8> b; }

struct headers_t { bytes_t h; }
struct meta_t {  }

const bit<128> KEY = 0x2b7e151628aed2a6abf7158809cf4f3c;
const bit<128> IV = 0x000102030405060708090a0b0c0d0e0f;

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
        aes_cbc_encrypt(0, KEY, IV); standard.mcast_grp = 7;
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { if (standard.egress_rid == 2) { aes_cbc_encrypt(0, KEY, IV); } else if (standard.egress_rid == 3) { aes_cbc_decrypt(0, KEY, IV); } } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
