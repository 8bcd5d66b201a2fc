// switch works on enums.
enum kind_t { one, two }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        kind_t k = kind_t.one;
        if (hdr.h.a == 2) { k = kind_t.two; }
        switch (k) {
            kind_t.one: { hdr.h.c = 1; }
            kind_t.two: { hdr.h.c = 2; }
        }
    }
}

#include "skeleton/end.p4"
