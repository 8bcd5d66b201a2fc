// With largest_priority_wins = false the smallest priority wins.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        key = { hdr.h.a: ternary; }
        actions = { set; none; }
        default_action = none();
        largest_priority_wins = false;
        entries = {
            priority = 1: _: set(0x11);
            priority = 9: 0x01 &&& 0x01: set(0x22);
        }
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

#include "skeleton/end.p4"
