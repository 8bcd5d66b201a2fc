// size is the number of elements, valid or not.
header one_t { bit<8> x; }
#define HEADERS bytes_t h; one_t[3] s;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = (bit<8>)hdr.s.size;
    }
}

#include "skeleton/end.p4"
