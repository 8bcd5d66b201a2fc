// Checksums over payloads use the current payload, encrypted or not.
#include <core.p4>
#include <v1model.p4>
#include <namehop.p4>

header bytes_t { bit<8> a; bit<8> b; bit<16> sum; }

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

control Verify(inout headers_t hdr, inout meta_t meta) { apply { aes_cbc_decrypt(0, KEY, IV); verify_checksum_with_payload(true, { hdr.h.a, hdr.h.b }, hdr.h.sum, HashAlgorithm.csum16); } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.b = (bit<8>)standard.checksum_error; aes_cbc_encrypt(0, KEY, IV);
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { update_checksum_with_payload(true, { hdr.h.a, hdr.h.b }, hdr.h.sum, HashAlgorithm.csum16); } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
