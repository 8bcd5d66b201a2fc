// A name in an inner block hides the same name in the outer one.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> x = 1;
        {
            bit<8> x = 2;
            hdr.h.c = x;
        }
        hdr.h.d = x;
    }
}

#include "skeleton/end.p4"
