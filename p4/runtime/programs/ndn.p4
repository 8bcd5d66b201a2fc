// Forwarding by names of up to seven components of 8 bytes; missing components are zero. The longest known prefix
// decides.
//
// A lookup begins with two components, which most prefixes have. It adds one component at a time, but only if an entry
// says that longer prefixes begin with its own: 'send_unless_longer' if the prefix itself is known too, and
// 'look_longer' if it is not. So adding a prefix of four components also requires its prefixes of two and three
// components. A prefix of one component is looked up last, if no longer prefix was found. The order is that of Kalia et
// al., "Raising the Bar for Using GPUs in Software Packet Processing" (NSDI 2015).
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header name_t {
    bit<64> first;
    bit<64> second;
    bit<64> third;
    bit<64> fourth;
    bit<64> fifth;
    bit<64> sixth;
    bit<64> seventh;
}

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
    // Whether a prefix was found, and whether longer ones begin with the last prefix that was looked up.
    bool found = false;
    bool longer = false;

    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) {
        standard.egress_spec = port;
        found = true;
        longer = false;
    }
    action send_unless_longer(bit<9> port) {
        standard.egress_spec = port;
        found = true;
        longer = true;
    }
    action look_longer() { longer = true; }
    action stop() { longer = false; }

    table names_of_one {
        key = { hdr.name.first: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }
    table names_of_two {
        key = { hdr.name.first: exact; hdr.name.second: exact; }
        actions = { send; send_unless_longer; look_longer; stop; }
        default_action = stop();
        size = 16777216;
    }
    table names_of_three {
        key = { hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; }
        actions = { send; send_unless_longer; look_longer; stop; }
        default_action = stop();
        size = 16777216;
    }
    table names_of_four {
        key = { hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; hdr.name.fourth: exact; }
        actions = { send; send_unless_longer; look_longer; stop; }
        default_action = stop();
        size = 4194304;
    }
    table names_of_five {
        key = {
            hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; hdr.name.fourth: exact;
            hdr.name.fifth: exact;
        }
        actions = { send; send_unless_longer; look_longer; stop; }
        default_action = stop();
        size = 1048576;
    }
    table names_of_six {
        key = {
            hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; hdr.name.fourth: exact;
            hdr.name.fifth: exact; hdr.name.sixth: exact;
        }
        actions = { send; send_unless_longer; look_longer; stop; }
        default_action = stop();
        size = 1048576;
    }
    table names_of_seven {
        key = {
            hdr.name.first: exact; hdr.name.second: exact; hdr.name.third: exact; hdr.name.fourth: exact;
            hdr.name.fifth: exact; hdr.name.sixth: exact; hdr.name.seventh: exact;
        }
        actions = { send; stop; }
        default_action = stop();
        size = 1048576;
    }
    apply {
        if (!hdr.name.isValid()) {
            drop();
        } else {
            if (hdr.name.second != 0) {
                names_of_two.apply();
                if (longer && hdr.name.third != 0) {
                    names_of_three.apply();
                    if (longer && hdr.name.fourth != 0) {
                        names_of_four.apply();
                        if (longer && hdr.name.fifth != 0) {
                            names_of_five.apply();
                            if (longer && hdr.name.sixth != 0) {
                                names_of_six.apply();
                                if (longer && hdr.name.seventh != 0) {
                                    names_of_seven.apply();
                                }
                            }
                        }
                    }
                }
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
