// Reading outside of a register gives zero; writing there does nothing.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) r;
    apply {
        standard.egress_spec = 1;
        r.write(9, 5);
        r.read(hdr.h.c, 9);
    }
}

#include "skeleton/end.p4"
