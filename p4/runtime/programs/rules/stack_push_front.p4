// push_front moves elements back and makes the first ones invalid.
header one_t { bit<8> x; }
#define HEADERS bytes_t h; one_t[3] s;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.s[0] = { 1 };
        hdr.s[1] = { 2 };
        hdr.s.push_front(1);
        hdr.h.c = hdr.s[0].isValid() ? 8w1 : 0;
        hdr.s[0] = { 9 };
    }
}

#include "skeleton/end.p4"
