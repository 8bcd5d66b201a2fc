// Where the smallest priority wins, an entry without one comes priority_delta above the one before it.
#define METADATA bit<8> x;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.h.d = value; }
    table t {
        key = { hdr.h.a: ternary; }
        actions = { set; NoAction; }
        default_action = NoAction();
        largest_priority_wins = false;
        priority_delta = 10;
        entries = {
            priority = 5: 0x01: set(1);
            0x02 &&& 0x0f: set(2);
            priority = 10: 0x10 &&& 0xf0: set(3);
        }
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

#include "skeleton/end.p4"
