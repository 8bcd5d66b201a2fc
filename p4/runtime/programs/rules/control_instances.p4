// Each instance of a control has its own registers.
#include "skeleton/begin.p4"

control Counter(out bit<8> x) {
    register<bit<8>>(1) seen;
    apply {
        seen.read(x, 0);
        x = x + 1;
        seen.write(0, x);
    }
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Counter() one;
    Counter() two;
    apply {
        standard.egress_spec = 1;
        one.apply(hdr.h.a);
        one.apply(hdr.h.b);
        two.apply(hdr.h.c);
    }
}

#include "skeleton/end.p4"
