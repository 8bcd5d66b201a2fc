// Headers are equal when both are invalid, or valid with equal fields.
header extra_t { bit<8> x; bit<8> y; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        extra_t x;
        extra_t y;
        hdr.h.b = x == y ? 8w1 : 0;
        x = { 1, 2 };
        hdr.h.c = x == y ? 8w1 : 0;
        y = { 1, 2 };
        hdr.h.d = x == y ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
