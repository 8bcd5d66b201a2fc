// Variables of a control are initialized for each packet.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    bit<8> x = 5;
    apply {
        standard.egress_spec = 1;
        x = x + 1;
        hdr.h.c = x;
    }
}

#include "skeleton/end.p4"
