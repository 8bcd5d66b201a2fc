// The fields of the given field list keep their values.
#define METADATA @field_list(1) bit<8> x; bit<8> y;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.instance_type == 6) { hdr.h.c = meta.x; hdr.h.d = meta.y; } else { meta.x = 5; meta.y = 6; resubmit_preserving_field_list(1); }
    }
}

#include "skeleton/end.p4"
