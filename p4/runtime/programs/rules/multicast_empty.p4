// A group that was never created sends nothing.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a == 1) { standard.mcast_grp = 6; }
    }
}

#include "skeleton/end.p4"
