// A layer 2 switch with two exact lookups per packet: whether the source address is known, and the port of the
// destination address.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }

struct headers_t { ethernet_t ethernet; }
struct meta_t { }

parser L2Parser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control L2Ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action known() { }
    action send(bit<9> port) { standard.egress_spec = port; }
    table senders {
        key = { hdr.ethernet.source: exact; }
        actions = { known; drop; }
        default_action = drop();
        size = 16777216;
    }
    table receivers {
        key = { hdr.ethernet.destination: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 16777216;
    }
    apply {
        if (!hdr.ethernet.isValid()) {
            drop();
        } else if (senders.apply().hit) {
            receivers.apply();
        }
    }
}

control L2Egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control L2Deparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(L2Parser(), Verify(), L2Ingress(), L2Egress(), Update(), L2Deparser()) main;
