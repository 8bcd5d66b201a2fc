// exit in an action of a table ends the control.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    action leave() { exit; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { leave; none; }
        default_action = none();
        const entries = { 1: leave(); }
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
        hdr.h.c = 1;
    }
}

#include "skeleton/end.p4"
