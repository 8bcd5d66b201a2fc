// return ends a function at once.
#include "skeleton/begin.p4"

bit<8> first(in bit<8> x) {
    if (x == 1) { return 10; }
    return 20;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = first(hdr.h.a);
    }
}

#include "skeleton/end.p4"
