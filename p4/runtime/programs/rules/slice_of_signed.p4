// A slice of a signed value is unsigned.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>)hdr.h.a;
        hdr.h.c = 4w0 ++ x[7:4];
        x[7:7] = 1;
        hdr.h.d = x < 0 ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
