// And, or and exclusive or work bit by bit.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> a = hdr.h.a;
        hdr.h.c = a & hdr.h.b;
        hdr.h.d = a | hdr.h.b;
        hdr.h.a = a ^ hdr.h.b;
    }
}

#include "skeleton/end.p4"
