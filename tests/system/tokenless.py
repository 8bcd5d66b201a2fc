"""tokenless.py DEVICE: a peer on an Ethernet that answers every Interest with bare Data, without the PIT token that came with it."""

import socket
import sys

from packets import data_of, elements, split_element

ETHERTYPE, OUTGOING = 0x8624, 4
INTEREST, LP_PACKET, FRAGMENT, PIT_TOKEN = 5, 0x64, 0x50, 0x62


def main():
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    device.bind((sys.argv[1], 0))
    print("ready", flush=True)
    while True:
        frame, (_, _, kind, *_) = device.recvfrom(65536)
        if kind == OUTGOING:
            continue
        # Behind it there may be padding.
        _, packet, _ = split_element(frame[14:])
        fields = elements(elements(packet)[LP_PACKET])
        assert PIT_TOKEN in fields, "the router sends one"
        asked = elements(elements(fields[FRAGMENT])[INTEREST])
        answer = data_of(asked[7])
        device.send((frame[6:12] + frame[:6] + frame[12:14] + answer).ljust(60, b"\0"))


main()
