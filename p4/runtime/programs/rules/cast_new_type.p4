// A new type is cast from and to what it is made of, and compared.
type bit<8> id_t;
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        id_t x = (id_t)hdr.h.a;
        if (x == (id_t)8w5) { hdr.h.c = (bit<8>)x; }
    }
}

#include "skeleton/end.p4"
