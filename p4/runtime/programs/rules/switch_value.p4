// switch compares a value with constants.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        switch (hdr.h.a) {
            1: { hdr.h.c = 10; }
            2:
            3: { hdr.h.c = 20; }
            default: { hdr.h.c = 30; }
        }
    }
}

#include "skeleton/end.p4"
