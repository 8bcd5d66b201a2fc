// A resubmitted packet comes in again as received.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.c + 1;
        if (standard.instance_type == 6) { hdr.h.d = 1; } else { resubmit_preserving_field_list(0); }
    }
}

#include "skeleton/end.p4"
