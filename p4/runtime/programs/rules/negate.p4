// Unary minus is subtraction from zero.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = -hdr.h.a;
    }
}

#include "skeleton/end.p4"
