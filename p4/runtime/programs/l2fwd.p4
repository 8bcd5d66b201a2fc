// Like DPDK's l2fwd: packets leave on the partner of their ingress port, with the addresses of that port.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }

struct headers_t { ethernet_t ethernet; }
struct meta_t { }

parser L2fwdParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control L2fwdIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.source = 0x020000000000 | (bit<48>)port;
        hdr.ethernet.destination = 0x020100000000 | (bit<48>)port;
    }
    table partners {
        key = { standard.ingress_port: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 512;
    }
    apply {
        if (hdr.ethernet.isValid()) {
            partners.apply();
        } else {
            drop();
        }
    }
}

control L2fwdEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control L2fwdDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(L2fwdParser(), Verify(), L2fwdIngress(), L2fwdEgress(), Update(), L2fwdDeparser()) main;
