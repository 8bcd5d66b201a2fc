// bool and bit<1> can be cast to each other.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bool x = (bool)hdr.h.a[0:0];
        hdr.h.c = 7w0 ++ (bit<1>)!x;
    }
}

#include "skeleton/end.p4"
