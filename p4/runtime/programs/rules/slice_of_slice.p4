// A slice can be sliced again, also on the left of an assignment.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a[7:2][3:1] = 3w7;
        hdr.h.c = 5w0 ++ hdr.h.b[6:1][4:2];
    }
}

#include "skeleton/end.p4"
