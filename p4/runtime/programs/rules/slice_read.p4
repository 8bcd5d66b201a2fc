// A slice has the bits from the left to the right index.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = 4w0 ++ hdr.h.a[7:4];
        hdr.h.d = 4w0 ++ hdr.h.a[3:0];
    }
}

#include "skeleton/end.p4"
