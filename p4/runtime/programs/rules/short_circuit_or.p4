// The right operand of || is not evaluated when the left one is true.
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
        bool x = hdr.h.a == 1 || yes(hdr.h.b);
    }
}

#include "skeleton/end.p4"
