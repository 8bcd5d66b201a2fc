// Saturating operations on signed values stop at both ends.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>)hdr.h.a;
        int<8> y = (int<8>)hdr.h.b;
        hdr.h.c = (bit<8>)(x |+| y);
        hdr.h.d = (bit<8>)(x |-| y);
    }
}

#include "skeleton/end.p4"
