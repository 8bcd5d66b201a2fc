// exit in an inner control ends the outer one, after copying out.
#include "skeleton/begin.p4"

control Inner(in bit<8> x, out bit<8> y) {
    apply {
        y = 5;
        if (x == 1) { exit; }
    }
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    apply {
        standard.egress_spec = 1;
        inner.apply(hdr.h.a, hdr.h.b);
        hdr.h.c = 1;
    }
}

#include "skeleton/end.p4"
