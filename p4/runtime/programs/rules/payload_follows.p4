// What the parser did not extract follows unchanged.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a = 0xFF;
    }
}

#include "skeleton/end.p4"
