// Actions copy in and out like functions.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action change(inout bit<8> x, bit<8> by) { x = x + by; }
    apply {
        standard.egress_spec = 1;
        change(hdr.h.a, 3);
    }
}

#include "skeleton/end.p4"
