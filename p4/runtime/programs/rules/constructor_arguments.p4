// A control gets constants when it is constructed.
#include "skeleton/begin.p4"

control Add(inout bit<8> x)(bit<8> by) {
    apply { x = x + by; }
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Add(10) one;
    Add(20) two;
    apply {
        standard.egress_spec = 1;
        one.apply(hdr.h.a);
        two.apply(hdr.h.b);
    }
}

#include "skeleton/end.p4"
