// The left operand of ++ becomes the upper bits.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> x = hdr.h.a ++ hdr.h.b;
        hdr.h.c = x[11:4];
        hdr.h.d = (bit<8>)x;
    }
}

#include "skeleton/end.p4"
