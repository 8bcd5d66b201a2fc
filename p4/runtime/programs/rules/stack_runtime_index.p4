// The index of an element can be computed.
header one_t { bit<8> x; }
#define HEADERS bytes_t h; one_t[3] s;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.s[0] = { 1 };
        hdr.s[1] = { 2 };
        hdr.s[2] = { 3 };
        hdr.s[hdr.h.a].x = 7;
        hdr.h.c = hdr.s[hdr.h.b].x;
    }
}

#include "skeleton/end.p4"
