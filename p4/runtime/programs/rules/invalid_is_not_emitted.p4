// Invalid headers are not emitted.
header extra_t { bit<8> x; bit<8> y; }
#define HEADERS bytes_t h; extra_t e;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.a == 1) { hdr.e.setValid(); hdr.e.x = 0xAB; hdr.e.y = 0xCD; }
    }
}

#include "skeleton/end.p4"
