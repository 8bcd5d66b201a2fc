// Variables without a value start at zero here, as in the behavioural model.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> x;
        bool y;
        hdr.h.c = x;
        hdr.h.d = y ? 8w1 : 2;
    }
}

#include "skeleton/end.p4"
