// Conditional expressions group from the right.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.a == 1 ? 8w10 : hdr.h.a == 2 ? 8w20 : 30;
    }
}

#include "skeleton/end.p4"
