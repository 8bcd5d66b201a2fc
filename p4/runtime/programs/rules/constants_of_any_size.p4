// Constants without width have no limits; only the result must fit.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a = (bit<8>)((1 << 100) >> 93);
    }
}

#include "skeleton/end.p4"
