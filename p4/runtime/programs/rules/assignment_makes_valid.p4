// Assigning a list to a header makes it valid.
header extra_t { bit<8> x; bit<8> y; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.e = { 1, 2 };
    }
}

#include "skeleton/end.p4"
