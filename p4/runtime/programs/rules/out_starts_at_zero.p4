// An out parameter does not bring its old value along.
#include "skeleton/begin.p4"

void keep(out bit<8> x) { }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        keep(hdr.h.a);
    }
}

#include "skeleton/end.p4"
