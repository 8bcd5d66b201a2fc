// A serialisable enum is its number; any number can be cast to it.
enum bit<8> kind_t { first = 7, second = 9 }
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.c = (bit<8>)kind_t.second;
        kind_t k = (kind_t)hdr.h.a;
        if (k == kind_t.first) { hdr.h.d = 1; }
    }
}

#include "skeleton/end.p4"
