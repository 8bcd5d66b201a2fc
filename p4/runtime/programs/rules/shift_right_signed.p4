// A right shift of a signed value copies its sign.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>)hdr.h.a;
        hdr.h.c = (bit<8>)(x >> hdr.h.b);
        hdr.h.d = hdr.h.a >> hdr.h.b;
    }
}

#include "skeleton/end.p4"
