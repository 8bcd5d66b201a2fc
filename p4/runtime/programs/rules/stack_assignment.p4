// Stacks are copied with the validity of all elements.
header one_t { bit<8> x; }
#define HEADERS bytes_t h; one_t[3] s;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        one_t[3] copy;
        hdr.s[0] = { 1 };
        hdr.s[1] = { 2 };
        copy = hdr.s;
        hdr.s.pop_front(3);
        hdr.s = copy;
    }
}

#include "skeleton/end.p4"
