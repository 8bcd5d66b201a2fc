// A list can be cast to a struct, by place or by name.
struct pair_t { bit<8> x; bit<8> y; }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        pair_t p = (pair_t){ 1, hdr.h.a };
        pair_t q = { y = 3, x = p.y };
        hdr.h.c = q.x;
        hdr.h.d = q.y;
    }
}

#include "skeleton/end.p4"
