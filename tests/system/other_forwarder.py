"""other_forwarder.py nfd|ndnd ADDRESS PORT: a UDP peer that behaves like another forwarder.

It ignores packets without Fragment, answers Interests under /x with Data, and drops Interests under /quiet. Like NFD it answers other
Interests with Nacks, which hold the Interest with its HopLimit decremented; like ndnd it drops them. It prints the names of all
Interests that are not under /x.
"""

import socket
import sys

from packets import data_of, elements, name, tlv

INTEREST, LP_PACKET, FRAGMENT, PIT_TOKEN = 5, 100, 80, 98
NAME, HOP_LIMIT = 7, 0x22
NACK_NO_ROUTE = tlv(800, tlv(801, bytes([150])))


def nack(interest):
    """Encodes a Nack for an Interest that ends in a HopLimit, if it has one."""
    hop_limit = elements(elements(interest)[INTEREST]).get(HOP_LIMIT)
    returned = interest if hop_limit is None else interest[:-1] + bytes([hop_limit[0] - 1])
    return tlv(LP_PACKET, NACK_NO_ROUTE + tlv(FRAGMENT, returned))


def main():
    kind, address, port = sys.argv[1:]
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind((address, int(port)))
    print("ready", flush=True)
    while True:
        packet, sender = peer.recvfrom(65536)
        link = elements(packet)
        if LP_PACKET in link:
            link = elements(link[LP_PACKET])
            assert PIT_TOKEN not in link, "no token goes to a peer that has not shown that it knows tokens"
            packet = link.get(FRAGMENT, b"")
        interest = elements(packet).get(INTEREST)
        if interest is None:
            continue
        asked = elements(interest)[NAME]
        if asked.startswith(name("/x")[2:]):
            peer.sendto(data_of(asked), sender)
            continue
        print(asked, flush=True)
        if kind == "nfd" and not asked.startswith(name("/quiet")[2:]):
            peer.sendto(nack(packet), sender)


main()
