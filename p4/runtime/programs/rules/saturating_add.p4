// Saturating addition stops at the largest unsigned value.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.a |+| hdr.h.b;
    }
}

#include "skeleton/end.p4"
