// Entries with ranges that would need more sets of masks than a table supports can still be added.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<16> a; bit<48> b; bit<8> c; bit<8> d; }

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
    action note(bit<8> value) { hdr.h.d = value; }
    table ranges {
        key = { hdr.h.a: range; hdr.h.b: range; hdr.h.c: ternary; }
        actions = { note; NoAction; }
    }
    apply {
        standard.egress_spec = 1;
        ranges.apply();
    }
}

#include "skeleton/end.p4"
