// A Named Data Networking forwarder, as far as v1model allows: Interests follow the longest known prefix of their name
// and leave a record of their ingress port; Data return to that port, once.
//
// Names have one to four generic components of 1 to 8 bytes. A pending Interest is in a register cell, chosen by a hash
// of the name. Another Interest with the same cell is dropped meanwhile, even if its name is different. There is no
// content store, no timer and no Nack: v1model keeps no packets and does nothing at a given time.
#include <core.p4>
#include <v1model.p4>

const bit<16> NDN = 0x8624;
const bit<8> INTEREST = 5;
const bit<8> DATA = 6;
const bit<8> NAME = 7;
const bit<8> COMPONENT = 8;
const bit<32> CELLS = 65536;

error { NotAName, NotAComponent, TooLong }

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header tlv_t { bit<8> type; bit<8> length; }
header component_t { bit<8> type; bit<8> length; varbit<64> value; }

struct headers_t { ethernet_t ethernet; tlv_t network; tlv_t name; component_t[4] components; }
struct meta_t {
    // Bytes of the name that are left, and number of components so far.
    bit<8> left;
    bit<8> count;
    bit<8> width;
    bit<64> value;
    bit<64> first;
    bit<64> second;
    bit<64> third;
    bit<64> fourth;
}

parser NdnParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            NDN: network;
        }
    }
    state network {
        packet.extract(hdr.network);
        packet.extract(hdr.name);
        verify(hdr.name.type == NAME, error.NotAName);
        // Lengths of 253 and more are encoded in several bytes.
        verify(hdr.network.length < 253 && hdr.name.length < 253, error.TooLong);
        meta.left = hdr.name.length;
        transition select(hdr.network.type) {
            INTEREST: component;
            DATA: component;
        }
    }
    state component {
        tlv_t head = packet.lookahead<tlv_t>();
        verify(head.type == COMPONENT, error.NotAComponent);
        verify(head.length >= 1 && head.length <= 8 && meta.count < 4, error.TooLong);
        verify(meta.left >= 2 && head.length <= meta.left - 2, error.TooLong);
        meta.width = head.length;
        meta.left = meta.left - 2 - head.length;
        meta.count = meta.count + 1;
        transition select(head.length) {
            1: one_byte;
            2: two_bytes;
            3: three_bytes;
            4: four_bytes;
            5: five_bytes;
            6: six_bytes;
            7: seven_bytes;
            8: eight_bytes;
        }
    }
    // Values have various lengths but keys do not, so values are aligned to the first bit of the key.
    state one_byte { meta.value = packet.lookahead<bit<24>>()[7:0] ++ 56w0; transition take; }
    state two_bytes { meta.value = packet.lookahead<bit<32>>()[15:0] ++ 48w0; transition take; }
    state three_bytes { meta.value = packet.lookahead<bit<40>>()[23:0] ++ 40w0; transition take; }
    state four_bytes { meta.value = packet.lookahead<bit<48>>()[31:0] ++ 32w0; transition take; }
    state five_bytes { meta.value = packet.lookahead<bit<56>>()[39:0] ++ 24w0; transition take; }
    state six_bytes { meta.value = packet.lookahead<bit<64>>()[47:0] ++ 16w0; transition take; }
    state seven_bytes { meta.value = packet.lookahead<bit<72>>()[55:0] ++ 8w0; transition take; }
    state eight_bytes { meta.value = packet.lookahead<bit<80>>()[63:0]; transition take; }
    state take {
        packet.extract(hdr.components.next, (bit<32>)meta.width * 8);
        transition select(meta.count) {
            1: first;
            2: second;
            3: third;
            4: fourth;
        }
    }
    state first { meta.first = meta.value; transition more; }
    state second { meta.second = meta.value; transition more; }
    state third { meta.third = meta.value; transition more; }
    state fourth { meta.fourth = meta.value; transition more; }
    state more {
        transition select(meta.left) {
            0: accept;
            default: component;
        }
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control NdnIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    // A name, and the ingress port of its Interest plus one.
    register<bit<272>>(CELLS) pending;

    action send(bit<9> port) { standard.egress_spec = port; }
    table names_of_four {
        key = { meta.first: exact; meta.second: exact; meta.third: exact; meta.fourth: exact; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table names_of_three {
        key = { meta.first: exact; meta.second: exact; meta.third: exact; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table names_of_two {
        key = { meta.first: exact; meta.second: exact; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table names_of_one {
        key = { meta.first: exact; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    apply {
        bool found = false;
        if (standard.parser_error == error.NoError && hdr.network.type == INTEREST) {
            if (meta.count >= 4) { found = names_of_four.apply().hit; }
            if (!found && meta.count >= 3) { found = names_of_three.apply().hit; }
            if (!found && meta.count >= 2) { found = names_of_two.apply().hit; }
            if (!found) { found = names_of_one.apply().hit; }
        }
        bit<256> name = meta.first ++ meta.second ++ meta.third ++ meta.fourth;
        bit<32> place;
        bit<272> cell;
        hash(place, HashAlgorithm.crc32, 32w0, { name }, CELLS);
        pending.read(cell, place);
        bool is_pending = cell[15:0] != 0;
        if (standard.parser_error != error.NoError) {
            mark_to_drop(standard);
        } else if (hdr.network.type == INTEREST) {
            if (found && !is_pending) {
                pending.write(place, name ++ ((bit<16>)standard.ingress_port + 1));
            } else {
                mark_to_drop(standard);
            }
        } else if (is_pending && cell[271:16] == name) {
            standard.egress_spec = (bit<9>)(cell[15:0] - 1);
            pending.write(place, 0);
        } else {
            mark_to_drop(standard);
        }
    }
}

control NdnEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control NdnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.network);
        packet.emit(hdr.name);
        packet.emit(hdr.components);
    }
}

V1Switch(NdnParser(), Verify(), NdnIngress(), NdnEgress(), Update(), NdnDeparser()) main;
