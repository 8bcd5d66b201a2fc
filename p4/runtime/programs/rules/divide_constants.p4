// Division of constants without width rounds down and needs no width.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a = 100 / 7;
        hdr.h.b = 100 % 7;
    }
}

#include "skeleton/end.p4"
