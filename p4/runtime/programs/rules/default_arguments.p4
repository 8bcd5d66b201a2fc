// A parameter with a default may be left out.
#include "skeleton/begin.p4"

bit<8> plus(in bit<8> x, in bit<8> y = 10) { return x + y; }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = plus(hdr.h.a);
        hdr.h.d = plus(hdr.h.a, 2);
    }
}

#include "skeleton/end.p4"
