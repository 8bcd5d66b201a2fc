"""The attacks: what each sends, from where, and how fast. The program router/traffic/examples/attack sends the packets."""

from dataclasses import dataclass, field

ROUTER, ROUTER_V6 = "192.0.2.1:6363", "[2001:db8:1::1]:6363"
# Each number gives a different /64.
MANY_NETWORKS = "2001:db8:bad:{}::1"


@dataclass
class Plan:
    """One attack. Rates are in packets, connections or posts per second."""

    # Rate when the attack runs alone, and when it runs with all others, which share two CPUs with router and victims.
    rate: int
    together: int
    options: dict = field(default_factory=dict)
    # Name of the rule in the attack program, if it differs from the name of the attack.
    rule: str = ""
    # The attacker is on the router's own host: a local user, or a page in the operator's browser.
    is_local: bool = False
    # Every packet must appear in a counter afterwards.
    is_counted: bool = True
    # The attack sends commands, which must have no effect.
    is_commanding: bool = False
    # The attack signs with a key that the router trusts.
    has_key: bool = False
    # Drop reason that the router must count when the attack runs alone.
    counter: str = ""


def tcp(**options):
    return {"to": ROUTER, "via": "tcp", **options}


def udp(**options):
    return {"to": ROUTER, "via": "udp", **options}


VICTIM = "/victim/late"

PLANS = {
    # Interests to an application that answers none of them.
    "unanswered": Plan(100_000, 20_000, tcp()),
    # The same from 1,500 senders, each with no more pending Interests than a well-behaved application.
    "unanswered-from-many": Plan(
        60_000, 3_000, {"to": ROUTER_V6, "via": "udp", "from": MANY_NETWORKS, "senders": 1500}, rule="unanswered"
    ),
    # Lifetimes of ten days; half of the Interests are answered.
    "endless-lifetimes": Plan(20_000, 4_000, tcp()),
    # 300 connections from 100 networks request 8000 bytes each and read nothing.
    "slow-readers": Plan(60_000, 6_000, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 100, "count": 300}, is_counted=False),
    # First fragments of 1000 bytes from 40 senders.
    "first-fragments": Plan(12_800, 5_000, {"to": ROUTER_V6, "via": "udp", "from": MANY_NETWORKS, "senders": 40}),
    # Silent connections from 200 networks, as many as the attacker can open.
    "silent-connections": Plan(2_000, 500, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 200, "count": 4000}, is_counted=False),
    # The same from one address.
    "silent-from-one-address": Plan(2_000, 200, {"to": ROUTER, "count": 4000}, rule="silent-connections", is_counted=False),
    # Datagrams with invented source addresses, each of them new.
    "spoofed-sources": Plan(20_000, 4_000, {"to": ROUTER, "via": "spoofed"}),
    # Registrations that claim the operator's signature.
    "signed-registrations": Plan(40_000, 3_000, tcp(), is_commanding=True),
    # A neighbour with a trusted key registers prefixes faster than the router processes commands.
    "many-registrations": Plan(5_000, 200, tcp(), has_key=True, counter="too-many-routes"),
    # Commands with the trusted key, recorded before the router started or signed with a clock that is twenty days ahead.
    "replayed-commands": Plan(20_000, 500, tcp(), has_key=True),
    # Commands without authorization.
    "stranger-commands": Plan(2_000, 500, tcp(), is_commanding=True),
    # Names of up to 8000 bytes and 100 components.
    "long-names": Plan(20_000, 3_000, tcp()),
    # Streams of garbage, each on its own connection.
    "garbage-streams": Plan(500, 100, {"to": ROUTER_V6, "from": MANY_NETWORKS, "senders": 200}, is_counted=False),
    # Posts from a page of another site, with a command as body.
    "web-page": Plan(20, 10, {"to": "127.0.0.1:6363"}, is_local=True, is_counted=False, is_commanding=True),
    # Connections to the metrics port that never finish their request.
    "held-metrics": Plan(
        1_000, 500, {"to": "127.0.0.1:9697", "count": 2000, "say": "GET /metrics HTTP/1.1\\r\\nHost: x\\r\\nX-"},
        rule="silent-connections", is_local=True, is_counted=False,
    ),
    # Connections of a local user to the HTTP port, as fast as possible: without a request, and with a request whose response is not read.
    "http-connections": Plan(20_000, 200, {"to": "127.0.0.1:9697", "count": 2000}, rule="silent-connections", is_local=True, is_counted=False),
    "http-slow-readers": Plan(
        1_000, 20, {"to": "127.0.0.1:9697", "count": 2000, "say": "GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"},
        rule="silent-connections", is_local=True, is_counted=False,
    ),
    # Data with names that a victim will request.
    "guessed-data": Plan(10_000, 3_000, udp(victim=VICTIM)),
    # Eight forwarding hints for each of these names.
    "hint-variants": Plan(10_000, 3_000, udp(victim=VICTIM)),
    # Interests with an implicit digest at 29 name lengths.
    "digests": Plan(1_000, 200, udp()),
}
