// A parameter with direction gets its argument where the table lists the action.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    action add(inout bit<8> x, bit<8> by) { x = x + by; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { add(hdr.h.b); none; }
        default_action = none();
        const entries = { 1: add(hdr.h.b, 4); }
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

#include "skeleton/end.p4"
