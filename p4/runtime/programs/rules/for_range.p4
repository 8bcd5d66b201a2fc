// A for loop over a range includes both ends.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i in 1 .. hdr.h.a) {
            hdr.h.c = hdr.h.c + i;
        }
    }
}

#include "skeleton/end.p4"
