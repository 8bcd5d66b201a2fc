// A small router with one of each object that a control plane can change: tables of all kinds, an action profile and a
// selector, direct counters and meters, idle timeouts, a value set, a counter, a meter, a register, digests, and
// packets to and from the controller.
#include <core.p4>
#include <v1model.p4>

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t { bit<9> port; bit<7> rest; }
@controller_header("packet_out")
header packet_out_t { bit<9> port; bit<7> rest; }

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> kind;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_length;
    bit<8> service;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct meta_t {
    bit<2> color;
    bit<1> denied;
}

struct seen_t {
    bit<48> address;
    bit<9> port;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    // EtherTypes that are also treated as IPv4.
    value_set<bit<16>>(4) like_ipv4;
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            0x0800: ipv4;
            like_ipv4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control Router(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) received;
    meter(8, MeterType.bytes) limits;
    register<bit<48>>(8) last_source;
    direct_counter(CounterType.packets_and_bytes) denials;
    direct_meter<bit<2>>(MeterType.packets) rule_limits;
    direct_counter(CounterType.packets) route_hits;
    action_selector(HashAlgorithm.crc16, 64, 16) next_hops;
    action_profile(16) outlets;

    action drop() {
        mark_to_drop(standard);
    }
    action to_controller() {
        standard.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.port = standard.ingress_port;
    }
    action deny() {
        meta.denied = 1;
    }
    action limit() {
        rule_limits.read(meta.color);
    }
    action send(bit<9> port) {
        standard.egress_spec = port;
    }
    action next_hop(bit<9> port, bit<48> address) {
        standard.egress_spec = port;
        hdr.ethernet.destination = address;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    action copy(bit<16> group) {
        standard.mcast_grp = group;
    }

    table rules {
        key = {
            hdr.ipv4.source: ternary;
            hdr.ipv4.protocol: range;
            standard.ingress_port: optional;
        }
        actions = { deny; limit; NoAction; }
        default_action = NoAction();
        counters = denials;
        meters = rule_limits;
        size = 64;
    }
    table routes {
        key = {
            hdr.ipv4.destination: lpm;
            hdr.ipv4.source: selector;
            hdr.ipv4.protocol: selector;
        }
        actions = { next_hop; to_controller; drop; }
        default_action = drop();
        implementation = next_hops;
        counters = route_hits;
        size = 128;
    }
    table stations {
        key = { hdr.ethernet.destination: exact; }
        actions = { send; copy; drop; to_controller; }
        default_action = to_controller();
        implementation = outlets;
        support_timeout = true;
        size = 32;
    }
    table services {
        key = { hdr.ipv4.service: exact; }
        actions = { drop; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = { 0xff: drop(); }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.port;
            hdr.packet_out.setInvalid();
            return;
        }
        received.count((bit<32>)standard.ingress_port);
        limits.execute_meter((bit<32>)standard.ingress_port, meta.color);
        last_source.write((bit<32>)standard.ingress_port, hdr.ethernet.source);
        digest<seen_t>(1, { hdr.ethernet.source, standard.ingress_port });
        if (hdr.ipv4.isValid()) {
            routes.apply();
            rules.apply();
            services.apply();
            if (meta.denied == 1 || meta.color == V1MODEL_METER_COLOR_RED) {
                drop();
            }
        } else {
            stations.apply();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }

control Update(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.service, hdr.ipv4.length, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), Router(), RouterEgress(), Update(), Deparse()) main;
