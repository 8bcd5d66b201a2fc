// Comparisons bind weaker than bitwise operators in P4, other than in C.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a & 1 == 1) { hdr.h.c = 1; }
    }
}

#include "skeleton/end.p4"
