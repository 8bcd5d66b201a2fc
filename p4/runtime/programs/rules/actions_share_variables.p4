// Actions of a control share its variables.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    bit<8> x = 5;
    action set() { x = 9; }
    apply {
        standard.egress_spec = 1;
        set();
        hdr.h.c = x;
    }
}

#include "skeleton/end.p4"
