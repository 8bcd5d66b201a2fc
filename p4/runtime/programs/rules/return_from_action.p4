// return ends only the action in which it is.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action act() {
        hdr.h.b = 1;
        if (hdr.h.a == 1) { return; }
        hdr.h.c = 2;
    }
    apply {
        standard.egress_spec = 1;
        act();
        hdr.h.d = 1;
    }
}

#include "skeleton/end.p4"
