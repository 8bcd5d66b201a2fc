// A for loop with start, condition and step.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            hdr.h.c = hdr.h.c + 2;
        }
    }
}

#include "skeleton/end.p4"
