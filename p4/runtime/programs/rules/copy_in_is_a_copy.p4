// A callee does not see changes of what was copied in.
#include "skeleton/begin.p4"

void alias(in bit<8> x, inout bit<8> y, out bit<8> z) {
    y = y + 1;
    z = x;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        alias(hdr.h.a, hdr.h.a, hdr.h.c);
    }
}

#include "skeleton/end.p4"
