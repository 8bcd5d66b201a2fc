// A number without a width takes the width of the other operand.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = 1 + hdr.h.a;
        hdr.h.d = hdr.h.a - 1;
    }
}

#include "skeleton/end.p4"
