// x op= y is x = x op y, with the place evaluated once.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a += 2;
        hdr.h.b -= 1;
        hdr.h.c <<= 4;
        hdr.h.d |= 1;
    }
}

#include "skeleton/end.p4"
