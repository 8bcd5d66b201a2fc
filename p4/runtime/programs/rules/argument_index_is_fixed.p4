// The place of an argument is fixed before the call runs.
header one_t { bit<8> x; }
#define HEADERS bytes_t h; one_t[3] s;
#define METADATA bit<8> i;
#include "skeleton/begin.p4"

void jump(out bit<8> x, inout bit<8> i) {
    i = 1;
    x = 7;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.s[0] = { 1 };
        hdr.s[1] = { 2 };
        jump(hdr.s[meta.i].x, meta.i);
    }
}

#include "skeleton/end.p4"
