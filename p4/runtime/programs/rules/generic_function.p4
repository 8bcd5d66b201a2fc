// The type of a generic function is inferred from its arguments.
#include "skeleton/begin.p4"

T pick<T>(in bool c, in T x, in T y) { if (c) { return x; } return y; }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = pick(hdr.h.a == 1, hdr.h.a, hdr.h.b);
        bit<16> w = pick(true, 16w0x1234, 16w0);
        hdr.h.d = w[15:8];
    }
}

#include "skeleton/end.p4"
