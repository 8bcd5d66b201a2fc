// A value that is read before a call is the old one.
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
        hdr.h.c = hdr.h.a + bump(hdr.h.a);
    }
}

#include "skeleton/end.p4"
