"""tokenless.py DEVICE: an Ethernet peer that understands only bare packets and answers every Interest with Data. A PIT token ends it."""

import socket
import sys

from packets import KNOWS_PIT_TOKENS_ASKS as KNOWS_TOKENS
from packets import data_of, elements, split_element

ETHERTYPE, OUTGOING = 0x8624, 4
INTEREST = 5


def main():
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    device.bind((sys.argv[1], 0))
    print("ready", flush=True)
    while True:
        frame, (_, _, kind, *_) = device.recvfrom(65536)
        if kind == OUTGOING:
            continue
        # The frame may end in padding.
        kind, packet, _ = split_element(frame[14:])
        if packet == KNOWS_TOKENS:
            continue
        assert kind == INTEREST, "the router sends bare Interests"
        asked = elements(elements(packet)[INTEREST])
        answer = data_of(asked[7])
        device.send((frame[6:12] + frame[:6] + frame[12:14] + answer).ljust(60, b"\0"))


main()
