// exit in an action ends the control around it too.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action act() { if (hdr.h.a == 1) { exit; } }
    apply {
        standard.egress_spec = 1;
        hdr.h.b = 1;
        act();
        hdr.h.c = 1;
    }
}

#include "skeleton/end.p4"
