// A table can be applied in both branches of a condition.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        key = { hdr.h.b: exact; }
        actions = { set; none; }
        default_action = none();
        const entries = { 7: set(9); }
    }
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a == 1) {
            hdr.h.c = 1;
            t.apply();
        } else {
            hdr.h.c = 2;
            t.apply();
        }
    }
}

#include "skeleton/end.p4"
