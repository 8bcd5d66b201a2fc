// A switch without a fitting case does nothing.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        switch (hdr.h.a) {
            1: { hdr.h.c = 10; }
        }
    }
}

#include "skeleton/end.p4"
