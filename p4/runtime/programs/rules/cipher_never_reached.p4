// If a program has no lookups, and its encryption is never reached, packets go one by one and access a register in
// order.
#include <core.p4>
#include <v1model.p4>
#include <namehop.p4>

header bytes_t { bit<8> a; bit<8> b; }

struct headers_t { bytes_t h; }
struct meta_t { }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(1) seen;
    apply {
        standard.egress_spec = 1;
        seen.read(hdr.h.a, 0);
        seen.write(0, hdr.h.a + 1);
        for (bit<8> i in 8w0 .. 8w0) {
            exit;
        }
        aes_cbc_encrypt(0, 1, 2);
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply { hdr.h.b = hdr.h.b + hdr.h.a; }
}

control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
