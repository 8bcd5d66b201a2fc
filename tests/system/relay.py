"""relay.py DEVICE DEVICE SEED: carries NDN frames between two network interfaces in both directions, and drops some.

Each line of standard input sets the share of frames to drop. The relay answers with the counters so far: one JSON list with an object per
direction.
"""

import json
import random
import select
import socket
import struct
import sys

ETHERTYPE, OUTGOING = 0x8624, 4
SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE = 263, 6, 33
LP_PACKET, TX_SEQUENCE = 0x64, 840


def is_protected(packet):
    """True if link reliability retransmits this frame when it is lost."""
    kind, at = number(packet, 0)
    if kind != LP_PACKET:
        return False
    length, at = number(packet, at)
    end = at + length
    while at < end:
        kind, at = number(packet, at)
        if kind == TX_SEQUENCE:
            return True
        length, at = number(packet, at)
        at += length
    return False


def number(packet, at):
    first = packet[at]
    if first < 253:
        return first, at + 1
    size = 2 if first == 253 else 4
    return int.from_bytes(packet[at + 1 : at + 1 + size], "big"), at + 1 + size


def open_device(name):
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    device.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    device.bind((name, 0))
    return device


def main():
    devices = [open_device(name) for name in sys.argv[1:3]]
    chance, loss = random.Random(int(sys.argv[3])), 0.0
    counts = [dict.fromkeys(("carried", "lost", "lost_protected", "overrun"), 0) for _ in devices]
    while True:
        for source in select.select([*devices, sys.stdin], [], [])[0]:
            if source is sys.stdin:
                line = sys.stdin.readline()
                if not line:
                    return
                loss = float(line)
                for device, count in zip(devices, counts):
                    # The kernel resets this counter at each read.
                    count["overrun"] += struct.unpack("II", device.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
                print(json.dumps(counts), flush=True)
                continue
            frame, (_, ethertype, kind, *_) = source.recvfrom(65536)
            if kind == OUTGOING or ethertype != ETHERTYPE:
                continue
            direction = devices.index(source)
            if chance.random() < loss:
                counts[direction]["lost"] += 1
                counts[direction]["lost_protected"] += is_protected(frame[14:])
            else:
                counts[direction]["carried"] += 1
                devices[1 - direction].send(frame)


main()
