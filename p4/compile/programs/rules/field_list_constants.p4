// Field lists and entry priorities can be given by constants and enum members as well as by numbers.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }

enum bit<8> Lists { none = 0, all = 3 }
const int SOME = 1;
const bit<8> FIRST = 1;

struct headers_t { bytes_t h; }
struct meta_t { @field_list(SOME, Lists.all) bit<8> x; @field_list(SOME + 1, Lists.all) bit<8> y; bit<8> z; }

parser ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control IngressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action some() { resubmit_preserving_field_list(1); }
    action others() { resubmit_preserving_field_list(2); }
    action all() { resubmit_preserving_field_list((bit<8>)Lists.all); }
    table again {
        key = { hdr.h.a: ternary; }
        actions = { some; others; all; }
        const entries = {
            0 &&& 0xf0: others() @priority(FIRST + 1);
            0 &&& 0xff: some() @priority(FIRST);
            _: all() @priority(9);
        }
    }
    apply {
        standard.egress_spec = 1;
        if (standard.instance_type == 6) {
            hdr.h.b = meta.x;
            hdr.h.c = meta.y;
            hdr.h.d = meta.z;
        } else {
            again.apply();
            // What counts is their value at the end.
            meta.x = 5;
            meta.y = 6;
            meta.z = 7;
        }
    }
}

control EgressImpl(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(ParserImpl(), Verify(), IngressImpl(), EgressImpl(), Update(), DeparserImpl()) main;
