// Packets of a batch may have different keys; action data is still correct after the encryption. Counters count the
// bytes after it.
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
    counter(1, CounterType.packets_and_bytes) sizes;
    action encrypt(bit<128> key, bit<8> mark) { aes_cbc_encrypt(0, key, IV); hdr.h.b = mark; }
    action decrypt(bit<32> offset) { hdr.h.b = 5; aes_cbc_decrypt(offset, KEY, IV); }
    table keys {
        key = { hdr.h.a: exact; }
        actions = { encrypt; decrypt; NoAction; }
        default_action = NoAction();
    }
    apply {
        standard.egress_spec = 1;
        keys.apply();
        sizes.count(0);
    }
}

#include "skeleton/end.p4"
