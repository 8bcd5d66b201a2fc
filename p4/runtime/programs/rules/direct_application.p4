// A control can be applied without a named instance.
#include "skeleton/begin.p4"

control Add(inout bit<8> x) { apply { x = x + 1; } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        Add.apply(hdr.h.a);
    }
}

#include "skeleton/end.p4"
