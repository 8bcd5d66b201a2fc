// truncate cuts the packet to a number of bytes.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        truncate(5);
    }
}

#include "skeleton/end.p4"
