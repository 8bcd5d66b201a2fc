// Operands are evaluated from the left to the right.
#include "skeleton/begin.p4"

bit<8> bump(inout bit<8> x) {
    x = x + 1;
    return x;
}
bool yes(inout bit<8> x) {
    x = x + 1;
    return true;
}

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = bump(hdr.h.a) ++ bump(hdr.h.a) == 16w0x0203 ? 8w1 : 0;
    }
}

#include "skeleton/end.p4"
