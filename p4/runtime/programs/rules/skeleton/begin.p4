// The beginning of most rules: the packet's first header, hdr.h, is parsed and nothing is verified. A rule may define
// HEADERS, the fields of headers_t, and METADATA, the fields of meta_t, before it includes this file.
#include <core.p4>
#include <v1model.p4>

#ifndef HEADERS
#define HEADERS bytes_t h;
#endif
#ifndef METADATA
#define METADATA
#endif

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { HEADERS }
struct meta_t { METADATA }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
