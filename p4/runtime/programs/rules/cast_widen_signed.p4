// Signed values are widened with their sign.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<16> x = (int<16>)(int<8>)hdr.h.a;
        bit<16> y = (bit<16>)x;
        hdr.h.c = y[15:8];
        hdr.h.d = y[7:0];
    }
}

#include "skeleton/end.p4"
