// Arguments can be given by name, in any order.
#include "skeleton/begin.p4"

void minus(in bit<8> x, in bit<8> y, out bit<8> z) { z = x - y; }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        minus(y = hdr.h.a, x = hdr.h.b, z = hdr.h.c);
    }
}

#include "skeleton/end.p4"
