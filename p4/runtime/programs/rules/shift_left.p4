// Bits shifted out on the left are lost.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.h.a << 4;
        hdr.h.d = hdr.h.a << hdr.h.b;
    }
}

#include "skeleton/end.p4"
