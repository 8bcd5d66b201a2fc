// Elements of tuples are numbered from zero.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        tuple<bit<8>, bit<8>> t = { hdr.h.b, hdr.h.a };
        hdr.h.c = t[0];
        hdr.h.d = t[1];
    }
}

#include "skeleton/end.p4"
