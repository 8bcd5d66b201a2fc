// Three dots stand for the defaults of all further fields.
struct pair_t { bit<8> x; bit<8> y; }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        pair_t p = { hdr.h.a, ... };
        hdr.h.c = p.x;
        hdr.h.d = p.y;
    }
}

#include "skeleton/end.p4"
