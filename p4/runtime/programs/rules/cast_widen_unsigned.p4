// Unsigned values are widened with zeros.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> x = (bit<16>)hdr.h.a;
        hdr.h.c = x[15:8];
        hdr.h.d = x[7:0];
    }
}

#include "skeleton/end.p4"
