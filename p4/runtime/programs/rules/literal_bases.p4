// Numbers can be decimal, octal, hexadecimal and binary, with underscores.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.a = 0x1F;
        hdr.h.b = 0b1010_1010;
        hdr.h.c = 8w0o17;
        hdr.h.d = 1_0;
    }
}

#include "skeleton/end.p4"
