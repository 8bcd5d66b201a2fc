// Products bind tighter than sums, sums tighter than shifts.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.a + hdr.h.b * 2;
        hdr.h.d = 8w1 << hdr.h.b + 1;
    }
}

#include "skeleton/end.p4"
