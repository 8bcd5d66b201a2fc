// A table without keys runs its default action and does not hit.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        actions = { set; }
        default_action = set(5);
    }
    apply {
        standard.egress_spec = 1;
        if (t.apply().hit) { hdr.h.c = 1; } else { hdr.h.c = 2; }
    }
}

#include "skeleton/end.p4"
