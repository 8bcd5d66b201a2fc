// Results of an action that ends with exit are written back.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action act(inout bit<8> x) {
        x = 9;
        exit;
    }
    apply {
        standard.egress_spec = 1;
        act(hdr.h.b);
        hdr.h.c = 1;
    }
}

#include "skeleton/end.p4"
