// Structs are equal when all fields are.
struct pair_t { bit<8> x; bit<8> y; }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        pair_t p = { hdr.h.a, 2 };
        hdr.h.c = p == { 1, 2 } ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
