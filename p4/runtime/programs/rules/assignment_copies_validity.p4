// Assigning a header copies its validity.
header extra_t { bit<8> x; bit<8> y; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        extra_t local;
        if (hdr.h.a == 1) { local = { 3, 4 }; }
        hdr.e = local;
    }
}

#include "skeleton/end.p4"
