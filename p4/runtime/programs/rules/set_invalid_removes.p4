// A header that is made invalid is removed from the packet.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.setInvalid();
    }
}

#include "skeleton/end.p4"
