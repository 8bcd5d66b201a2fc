// Signed values are compared with their sign.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = (int<8>)hdr.h.a < (int<8>)hdr.h.b ? 8w1 : 0;
        hdr.h.d = hdr.h.a < hdr.h.b ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
