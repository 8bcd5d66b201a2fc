// A header that is an out parameter starts invalid.
header extra_t { bit<8> x; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

void maybe(in bool set, out extra_t e) {
    if (set) {
        e.setValid();
        e.x = 0xAA;
    }
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        maybe(hdr.h.a == 1, hdr.e);
        hdr.h.c = hdr.e.isValid() ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
