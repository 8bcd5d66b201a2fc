// Counters count packets and bytes.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) c;
    apply {
        standard.egress_spec = 1;
        c.count((bit<32>)hdr.h.a);
    }
}

#include "skeleton/end.p4"
