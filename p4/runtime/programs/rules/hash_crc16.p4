// hash with crc16 is CRC-16/ARC over the data.
#include "skeleton/begin.p4"

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> x;
        hash(x, HashAlgorithm.crc16, 16w0, { 72w0x313233343536373839 }, 32w0x10000);
        hdr.h.c = x[15:8];
        hdr.h.d = x[7:0];
    }
}

#include "skeleton/end.p4"
