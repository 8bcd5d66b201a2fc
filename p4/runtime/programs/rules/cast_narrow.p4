// A cast to a narrower type keeps the low bits.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> x = hdr.h.a ++ hdr.h.b;
        hdr.h.c = (bit<8>)x;
    }
}

#include "skeleton/end.p4"
