// Writing a slice leaves the other bits alone.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a[7:4] = 1;
        hdr.h.b[3:0] = hdr.h.a[7:4];
        hdr.h.c[0:0] = 1;
    }
}

#include "skeleton/end.p4"
