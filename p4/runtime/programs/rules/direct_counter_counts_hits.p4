// A direct counter counts each packet that matches an entry, even if its action does not call count.
#define METADATA bit<8> x;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action first() { hdr.h.d = 1; }
    action second() { hdr.h.d = 2; hits.count(); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { first; second; }
        default_action = second();
        counters = hits;
        size = 16;
    }
    apply {
        standard.egress_spec = 1;
        t.apply();
    }
}

#include "skeleton/end.p4"
