// The control plane writes and resets registers.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) r;
    apply {
        standard.egress_spec = 1;
        r.read(hdr.h.c, (bit<32>)hdr.h.a);
    }
}

#include "skeleton/end.p4"
