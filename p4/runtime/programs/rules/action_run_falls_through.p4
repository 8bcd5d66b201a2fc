// A label without a body uses the next body.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; none; }
        default_action = none();
        const entries = { 1: set(9); }
    }
    apply {
        standard.egress_spec = 1;
        switch (t.apply().action_run) {
            set:
            none: { hdr.h.c = 1; }
        }
    }
}

#include "skeleton/end.p4"
