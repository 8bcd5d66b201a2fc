// Results of inout parameters are written back when the call ends.
#include "skeleton/begin.p4"

void twice(inout bit<8> x, inout bit<8> y) {
    x = 1;
    y = y + 4;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        twice(hdr.h.a, hdr.h.a);
    }
}

#include "skeleton/end.p4"
