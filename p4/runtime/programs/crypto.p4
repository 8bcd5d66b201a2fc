// Like DPDK's l2fwd-crypto: packets leave on the partner of their ingress port, and their IPv4 payload is encrypted or
// decrypted with AES-CBC. The key belongs to a session, which the control plane sets as the default action of a table.
#include <core.p4>
#include <v1model.p4>
#include <namehop.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> length; bit<8> service; bit<16> total;
    bit<16> identification; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> source; bit<32> destination;
}

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { }

parser CryptoParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
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

control CryptoIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    // IPv4 options stay unencrypted, because they are part of the header.
    bit<32> options = 4 * ((bit<32>)hdr.ipv4.length - 5);
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.source = 0x020000000000 | (bit<48>)port;
        hdr.ethernet.destination = 0x020100000000 | (bit<48>)port;
    }
    action encrypt(bit<128> key, bit<128> iv) { aes_cbc_encrypt(options, key, iv); }
    action decrypt(bit<128> key, bit<128> iv) { aes_cbc_decrypt(options, key, iv); }
    table partners {
        key = { standard.ingress_port: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 512;
    }
    table session {
        actions = { encrypt; decrypt; drop; }
        default_action = drop();
    }
    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.length < 5) {
            drop();
        } else if (partners.apply().hit) {
            session.apply();
        }
    }
}

control CryptoEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control CryptoDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(CryptoParser(), Verify(), CryptoIngress(), CryptoEgress(), Update(), CryptoDeparser()) main;
