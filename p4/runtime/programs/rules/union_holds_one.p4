// Making one header of a union valid makes the others invalid.
header one_t { bit<8> x; }
header two_t { bit<16> x; }
header_union either_t { one_t one; two_t two; }
#define HEADERS bytes_t h; either_t u;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.u.one = { 1 };
        if (hdr.h.a == 1) { hdr.u.two = { 0x0203 }; }
    }
}

#include "skeleton/end.p4"
