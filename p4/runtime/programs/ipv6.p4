// An IPv6 router: one longest-prefix lookup; updates the hop limit and the Ethernet addresses.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv6_t {
    bit<4> version; bit<8> class; bit<20> flow; bit<16> length; bit<8> next; bit<8> hops;
    bit<128> source; bit<128> destination;
}

struct headers_t { ethernet_t ethernet; ipv6_t ipv6; }
struct meta_t { }

parser Ipv6Parser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x86DD: ipv6;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control Ipv6Ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) { standard.egress_spec = port; }
    table routes {
        key = { hdr.ipv6.destination: lpm; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply {
        if (!hdr.ipv6.isValid() || hdr.ipv6.hops <= 1) {
            drop();
        } else if (routes.apply().hit) {
            hdr.ipv6.hops = hdr.ipv6.hops - 1;
        }
    }
}

control Ipv6Egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.ethernet.source = 0x020000000000 | (bit<48>)standard.egress_port;
        hdr.ethernet.destination = 0x020100000000 | (bit<48>)standard.egress_port;
    }
}
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control Ipv6Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(Ipv6Parser(), Verify(), Ipv6Ingress(), Ipv6Egress(), Update(), Ipv6Deparser()) main;
