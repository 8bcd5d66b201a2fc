// An IPv4 router: one longest-prefix lookup; updates the time to live, the checksum and the Ethernet addresses.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> length; bit<8> service; bit<16> total;
    bit<16> identification; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> source; bit<32> destination;
}

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { }

parser Ipv4Parser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control Ipv4Ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) { standard.egress_spec = port; }
    table routes {
        key = { hdr.ipv4.destination: lpm; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else if (routes.apply().hit) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            // Updates the checksum for the decremented time to live: RFC 1624, equation 3.
            bit<17> sum = (bit<17>)hdr.ipv4.checksum + 0x100;
            hdr.ipv4.checksum = sum[15:0] + (bit<16>)sum[16:16];
        }
    }
}

control Ipv4Egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {
        // As in DPDK's l3fwd: source is the address of the egress port, destination that of the port at its other end.
        hdr.ethernet.source = 0x020000000000 | (bit<48>)standard.egress_port;
        hdr.ethernet.destination = 0x020100000000 | (bit<48>)standard.egress_port;
    }
}
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control Ipv4Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Ipv4Parser(), Verify(), Ipv4Ingress(), Ipv4Egress(), Update(), Ipv4Deparser()) main;
