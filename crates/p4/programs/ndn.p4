// Forwarding by names of 32 bytes: four components of 8 bytes, the last ones zero where a name has fewer. The longest
// prefix that is known decides; there is an exact lookup for each length, the longest one first.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header name_t { bit<64> first; bit<64> second; bit<64> third; bit<64> fourth; }

struct headers_t { ethernet_t ethernet; name_t name; }
struct meta_t { }

parser NdnParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8624: name;
            default: accept;
        }
    }
    state name {
        packet.extract(hdr.name);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control NdnIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) { standard.egress_spec = port; }
    table names_of_four {
        key = { hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; hdr.name.fourth: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 16777216;
    }
    table names_of_three {
        key = { hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 16777216;
    }
    table names_of_two {
        key = { hdr.name.first: exact; hdr.name.second: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 16777216;
    }
    table names_of_one {
        key = { hdr.name.first: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply {
        if (!hdr.name.isValid()) {
            drop();
        } else {
            bool found = false;
            if (hdr.name.fourth != 0) {
                found = names_of_four.apply().hit;
            }
            if (!found && hdr.name.third != 0) {
                found = names_of_three.apply().hit;
            }
            if (!found && hdr.name.second != 0) {
                found = names_of_two.apply().hit;
            }
            if (!found) {
                names_of_one.apply();
            }
        }
    }
}

control NdnEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control NdnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.name);
    }
}

V1Switch(NdnParser(), Verify(), NdnIngress(), NdnEgress(), Update(), NdnDeparser()) main;
