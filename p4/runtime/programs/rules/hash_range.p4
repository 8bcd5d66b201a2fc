// hash gives base + value % max.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hash(hdr.h.c, HashAlgorithm.identity, 8w10, { hdr.h.a }, 8w7);
    }
}

#include "skeleton/end.p4"
