// Of two results for one place the last one stays.
#include "skeleton/begin.p4"

void both(out bit<8> x, out bit<8> y) {
    y = 2;
    x = 1;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        both(hdr.h.a, hdr.h.a);
    }
}

#include "skeleton/end.p4"
