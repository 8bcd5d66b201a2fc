// Writing a field of an invalid header does not make it valid.
header extra_t { bit<8> x; bit<8> y; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.e.x = 5;
        hdr.h.c = hdr.e.isValid() ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
