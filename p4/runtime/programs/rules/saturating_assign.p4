// |+|= and |-|= saturate.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a |+|= 2;
        hdr.h.b |-|= 2;
    }
}

#include "skeleton/end.p4"
