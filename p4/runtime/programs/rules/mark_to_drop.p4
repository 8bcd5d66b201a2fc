// A packet that is marked for dropping is dropped.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a == 1) { mark_to_drop(standard); }
    }
}

#include "skeleton/end.p4"
