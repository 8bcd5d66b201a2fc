// Field lists and entry priorities can be given by constants and enum members as well as by numbers.
enum bit<8> Lists { none = 0, all = 3 }
const int SOME = 1;
const bit<8> FIRST = 1;
#define METADATA @field_list(SOME, Lists.all) bit<8> x; @field_list(SOME + 1, Lists.all) bit<8> y; bit<8> z;
#include "skeleton/begin.p4"

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

#include "skeleton/end.p4"
