// Values may be wider than the registers of any machine.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<256> x = (bit<256>)hdr.h.a << 200;
        x = x + ((bit<256>)hdr.h.b << 208);
        hdr.h.c = x[207:200];
        hdr.h.d = x[215:208];
    }
}

#include "skeleton/end.p4"
