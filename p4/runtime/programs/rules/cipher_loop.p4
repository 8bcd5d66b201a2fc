// Encryption works in loops, functions, actions and controls, with arguments of any kind.
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

void encrypt(in bit<32> offset, in bit<8> first) { aes_cbc_encrypt(offset, KEY, (bit<128>)first); }

control Decrypter(inout headers_t hdr) {
    action decrypt(bit<32> offset) { aes_cbc_decrypt(offset, KEY, (bit<128>)hdr.h.a); hdr.h.a = hdr.h.a + 1; }
    apply { decrypt((bit<32>)hdr.h.b); hdr.h.b = hdr.h.b + 1; }
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Decrypter() decrypter;
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a == 3) {
            for (bit<8> i in 8w0 .. 8w2) { encrypt((bit<32>)i, i); }
            hdr.h = { hdr.h.a + 1, hdr.h.b + 1 };
        } else if (hdr.h.a == 9) {
            decrypter.apply(hdr);
        } else {
            encrypt((bit<32>)hdr.h.b, hdr.h.a);
            hdr.h = { hdr.h.a + 1, hdr.h.b + 1 };
        }
    }
}

#include "skeleton/end.p4"
