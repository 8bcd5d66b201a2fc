// Of several prefixes the longest wins, whatever the order.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> x) { hdr.h.d = x; }
    action none() { hdr.h.d = 0xEE; }
    table t {
        key = { hdr.h.a: lpm; }
        actions = { set; none; }
        default_action = none();
        const entries = {
            0x10 &&& 0xF0: set(0x11);
            0x12 &&& 0xFE: set(0x22);
            _: set(0x33);
        }
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

#include "skeleton/end.p4"
