"""The attacks: what each sends, from where, and how fast. The sending is done by router/traffic/examples/attack."""

from dataclasses import dataclass, field

ROUTER, ROUTER_V6 = "192.0.2.1:6363", "[2001:db8:1::1]:6363"
# A different /64 for each number.
MANY_NETWORKS = "2001:db8:bad:{}::1"


@dataclass
class Plan:
    """One attack. Rates are packets, connections or posts a second."""

    # Rate when it is the only attack, and together with all others, which share two processors with router and victims.
    rate: int
    together: int
    options: dict = field(default_factory=dict)
    # Rule in the sending program, if it is not called as the attack.
    rule: str = ""
    # On the router's own computer: a local user, or a page in the operator's browser.
    is_local: bool = False
    # Every packet has to be found in a counter afterwards.
    is_counted: bool = True
    # It gives commands, which must have no effect.
    is_commanding: bool = False
    # It signs with the key that the router trusts.
    has_key: bool = False
    # Reason of drops that the router has to count when it is the only attack.
    counter: str = ""


def tcp(**options):
    return {"to": ROUTER, "via": "tcp", **options}


def udp(**options):
    return {"to": ROUTER, "via": "udp", **options}


VICTIM = "/victim/late"

PLANS = {
    # Interests that go to an application which answers none of them.
    "unanswered": Plan(100_000, 20_000, tcp()),
    # The same from 1,500 senders, none of whom has more pending than the well-behaved applications.
    "unanswered-from-many": Plan(
        60_000, 3_000, {"to": ROUTER_V6, "via": "udp", "from": MANY_NETWORKS, "senders": 1500}, rule="unanswered"
    ),
    # Lifetimes of ten days, half of them answered.
    "endless-lifetimes": Plan(20_000, 4_000, tcp()),
    # 300 connections from 100 networks ask for 8000 bytes each and read nothing.
    "slow-readers": Plan(60_000, 6_000, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 100, "count": 300}, is_counted=False),
    # First fragments of 1000 bytes from 40 senders.
    "first-fragments": Plan(12_800, 5_000, {"to": ROUTER_V6, "via": "udp", "from": MANY_NETWORKS, "senders": 40}),
    # Connections from 200 networks that say nothing, as many as the sender may have.
    "silent-connections": Plan(2_000, 500, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 200, "count": 4000}, is_counted=False),
    # The same from one address.
    "silent-from-one-address": Plan(2_000, 200, {"to": ROUTER, "count": 4000}, rule="silent-connections", is_counted=False),
    # Datagrams with invented senders, each of them new.
    "spoofed-sources": Plan(20_000, 4_000, {"to": ROUTER, "via": "spoofed"}),
    # Registrations that claim to be signed by the operator.
    "signed-registrations": Plan(40_000, 3_000, tcp(), is_commanding=True),
    # A neighbour with a trusted key registers ever more prefixes, faster than the router looks at commands.
    "many-registrations": Plan(5_000, 200, tcp(), has_key=True, counter="too-many-routes"),
    # Recorded before the router was started, or signed by a clock that is twenty days ahead, with the trusted key.
    "replayed-commands": Plan(20_000, 500, tcp(), has_key=True),
    # Commands that a stranger may not give.
    "stranger-commands": Plan(2_000, 500, tcp(), is_commanding=True),
    # Names of up to 8000 bytes and 100 components.
    "long-names": Plan(20_000, 3_000, tcp()),
    # Streams of nonsense, each a connection of its own.
    "garbage-streams": Plan(500, 100, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 200}, is_counted=False),
    # Posts of a page of another site, with a command as their body.
    "web-page": Plan(20, 10, {"to": "127.0.0.1:6363"}, is_local=True, is_counted=False, is_commanding=True),
    # Connections to the metrics port that never finish their request.
    "held-metrics": Plan(
        1_000, 500, {"to": "127.0.0.1:9697", "count": 2000, "say": "GET /metrics HTTP/1.1\\r\\nHost: x\\r\\nX-"},
        rule="silent-connections", is_local=True, is_counted=False,
    ),
    # Connections of a local user to the HTTP port, as fast as it can: without a request, and with one whose answer is not read.
    "http-connections": Plan(20_000, 200, {"to": "127.0.0.1:9697", "count": 2000}, rule="silent-connections", is_local=True, is_counted=False),
    "http-slow-readers": Plan(
        1_000, 20, {"to": "127.0.0.1:9697", "count": 2000, "say": "GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"},
        rule="silent-connections", is_local=True, is_counted=False,
    ),
    # Data with the names that a victim will ask for.
    "guessed-data": Plan(10_000, 3_000, udp(victim=VICTIM)),
    # Eight forwarding hints for each of these names.
    "hint-variants": Plan(10_000, 3_000, udp(victim=VICTIM)),
    # Interests with an implicit digest at 29 depths.
    "digests": Plan(1_000, 200, udp()),
}
