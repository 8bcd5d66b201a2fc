// A union is valid when one of its headers is.
header one_t { bit<8> x; }
header two_t { bit<16> x; }
header_union either_t { one_t one; two_t two; }
#define HEADERS bytes_t h; either_t u;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = hdr.u.isValid() ? 8w1 : 0;
        hdr.u.one.setValid();
        hdr.h.d = hdr.u.isValid() ? 8w1 : 0;
        hdr.u.one.setInvalid();
    }
}

#include "skeleton/end.p4"
