"""`namehop p4 run` on network cards without the kernel (pci://).

There are two networks, each with a host: a kernel card in a network namespace. A compiled program forwards between two other cards.
"""

import json
import re
import subprocess

import pytest
from guest import PROGRAM, ROOT
from test_pci import address_of, interface_of

CARDS = ["virtio-net,queues=2", "vmxnet3,network=1", "e1000e", "e1000e,network=1", "e1000e"]
# Numbers of the cards of the programs, by port number, and numbers of the cards of the hosts.
FAST, PLAIN = (0, 1), (4, 1)
WEST, EAST = 2, 3
P4 = PROGRAM.with_name("namehop-p4")
PROGRAMS = [P4]
HUGE_PAGES = "256MiB"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Compiled programs, because the guest has no compiler."""
    folder = tmp_path_factory.mktemp("programs")
    made = [folder / f"{name}.so" for name in ("l2", "ipv4")]
    for file in made:
        subprocess.run([P4, "compile", ROOT / f"p4/runtime/programs/{file.stem}.p4", "-o", file], check=True)
    return made


class Host:
    """A kernel card in its own network namespace."""

    def __init__(self, guest, number, mac):
        self.guest, self.mac = guest, mac
        interface = interface_of(guest, number)
        guest.run(f"unshare -n sleep 100000 & echo $! > /tmp/host{number}")
        self.process = guest.run(f"cat /tmp/host{number}").strip()
        guest.wait(f'[ "$(readlink /proc/{self.process}/ns/net)" != "$(readlink /proc/self/ns/net)" ]')
        guest.run(f"ip link set {interface} netns {self.process}")
        self.run(f"ip link set {interface} address {mac}; ip link set {interface} up; ip link set lo up")
        self.run(f"ip link add link {interface} name tagged type vlan id 7; ip link set tagged up")
        # Answer each datagram for a closed port, without a rate limit.
        self.run("echo 0 > /proc/sys/net/ipv4/icmp_ratelimit")
        self.interface = interface

    def run(self, command, check=True):
        return self.guest.run(f"nsenter -t {self.process} -n sh -c '{command}'", check=check)

    def address(self, address, interface=None):
        self.run(f"ip address add {address} dev {interface or self.interface}")

    def knows(self, address, mac):
        self.run(f"arp -s {address} {mac}")

    def ping(self, address, options="-c 3"):
        """Returns whether all pings were answered, and the output."""
        code, text = self.run(f"ping {options} -W 5 {address}", check=False)
        return code == 0 and " 0% packet loss" in text, text


@pytest.fixture(scope="module")
def hosts(guest):
    """The two hosts, with static ARP entries for each other, because the programs answer no ARP."""
    guest.run("modprobe 8021q")
    west, east = Host(guest, WEST, "02:01:00:00:00:00"), Host(guest, EAST, "02:01:00:00:00:01")
    for number, (host, other) in enumerate([(west, east), (east, west)], 1):
        # For the router: a gateway with a MAC address that no card has.
        host.address(f"10.0.{number}.1/24")
        host.knows(f"10.0.{number}.254", "02:aa:00:00:00:01")
        host.run(f"ip route add default via 10.0.{number}.254")
        # For the switch, without and with a VLAN tag.
        for network, interface in ((3, host.interface), (4, "tagged")):
            host.address(f"10.0.{network}.{number}/24", interface)
            host.knows(f"10.0.{network}.{3 - number}", other.mac)
    return west, east


class Switch:
    """A program that runs on two cards."""

    def __init__(self, guest, cards, program, options=""):
        self.guest = guest
        self.cards = [address_of(guest, number) for number in cards]
        nics = " ".join(f"--nic {card}" for card in self.cards)
        guest.run(f"namehop setup --huge-pages {HUGE_PAGES} {nics} --apply --yes")
        ports = " ".join(f"--port {number}=pci://{card}" for number, card in enumerate(self.cards))
        command = f"namehop p4 run /usr/share/{program}.so {ports} --control /run/p4 --json --report 1 {options}"
        guest.run(
            f"rm -f /tmp/switch.*; {{ {command} > /tmp/switch.out 2> /tmp/switch.err & echo $! > /tmp/switch.pid; "
            "wait $!; echo $? > /tmp/switch.code; } &"
        )
        guest.wait("grep -q running /tmp/switch.err || { cat /tmp/switch.err; false; }")
        self.wait_for_links([True, True])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Cleans up after a failed test, so that the next test can use the cards."""
        self.guest.run("kill -9 $(cat /tmp/switch.pid); while kill -0 $(cat /tmp/switch.pid); do sleep 0.1; done", check=False)
        self.guest.run("namehop setup --undo --yes", check=False)

    def report(self):
        """Returns the last complete report."""
        return json.loads(self.guest.wait("grep }$ /tmp/switch.out | tail -n 1 | grep ."))

    def ports(self):
        return self.report()["ports"]

    def wait_for_links(self, states):
        ups = ".*".join(f'"up":{str(state).lower()}' for state in states)
        self.guest.wait(f"tail -n 1 /tmp/switch.out | grep -q '{ups}' || {{ tail -n 1 /tmp/switch.out; cat /tmp/switch.err; false; }}")

    def table(self, *entries):
        self.guest.write("/tmp/entries", "\n".join(entries))
        self.guest.run("namehop p4 table load /tmp/entries --control /run/p4")

    def code(self):
        """Waits for the end of the program and returns its exit code."""
        return int(self.guest.wait("cat /tmp/switch.code"))

    def end(self):
        """Ends the program, gives the cards back and returns its last report."""
        self.guest.run("kill $(cat /tmp/switch.pid)")
        assert self.code() == 0, self.guest.run("cat /tmp/switch.err")
        self.guest.run("namehop setup --undo --yes")
        return self.report()


def test_what_is_wrong_with_a_card_is_named_with_what_to_do(guest, hosts):
    card = address_of(guest, PLAIN[0])

    def refusal(port):
        code, text = guest.run(f"namehop p4 run /usr/share/l2.so --port 0=pci://{port}", check=False)
        assert code == 1, text
        return text

    text = refusal(card)
    assert "huge pages" in text and re.search(r"\d+ MiB", text) and "namehop setup" in text
    guest.run(f"namehop setup --huge-pages {HUGE_PAGES} --apply --yes")
    text = refusal(card)
    assert "driver e1000e" in text and f"namehop setup --nic {card}" in text
    assert "no such device" in refusal("0000:7f:1f.7")
    # The card still has its driver.
    assert "e1000e" in guest.run(f"readlink /sys/bus/pci/devices/{card}/driver")
    guest.run("namehop setup --undo --yes")


def test_a_router_of_ipv4_spreads_flows_over_its_workers(guest, hosts):
    west, east = hosts
    with Switch(guest, FAST, "ipv4", "--workers 2") as switch:
        switch.table(
            "routes hdr.ipv4.destination:10.0.1.0/24 send(port:0)",
            "routes hdr.ipv4.destination:10.0.2.0/24 send(port:1)",
        )
        for options in ("-c 5", "-c 3 -s 1472"):
            answered, text = west.ping("10.0.2.1", options)
            assert answered and "ttl=63" in text, text + str(switch.ports())
        # Each datagram has another destination port, so RSS spreads them over the two queues.
        text = west.run("traceroute -n -f 2 -m 2 -q 16 -w 2 10.0.2.1")
        assert text.count(" ms") == 16, text + str(switch.ports())
        report = switch.end()
    print(report)
    first, second = report["ports"]
    assert report["workers"] == 2 and first["queues"] == 2
    assert all(first["received_packets_by_worker"]) and sum(first["received_packets_by_worker"]) == first["received_packets"]
    for port, other in ((first, second), (second, first)):
        # 8 pings and 16 datagrams, or their answers. The hosts may send more packets, which have no route.
        assert 24 <= other["sent_packets"] <= port["received_packets"], report
        assert port["output_full"] == port["no_buffer"] == port["malformed"] == port["send_failed"] == 0, report
    assert (report["lost"], report["oversized"], report["no_port"]) == (0, 0, 0)
    assert first["received_packets"] + second["received_packets"] == first["sent_packets"] + second["sent_packets"] + report["dropped"]


def stations(hosts):
    """Returns the table entries of the layer 2 switch."""
    known = [f'senders hdr.ethernet.source:"{host.mac}" known()' for host in hosts]
    return known + [f'receivers hdr.ethernet.destination:"{host.mac}" send(port:{port})' for port, host in enumerate(hosts)]


@pytest.mark.parametrize("cards", [FAST, PLAIN], ids=["virtio-net", "e1000e"])
def test_a_switch_passes_frames_as_they_are(guest, hosts, cards):
    west, east = hosts
    with Switch(guest, cards, "l2") as switch:
        switch.table(*stations(hosts))
        # Without and with a VLAN tag.
        for address in ("10.0.3.2", "10.0.4.2"):
            for options in ("-c 3", "-c 3 -s 1472"):
                answered, text = west.ping(address, options)
                assert answered and "ttl=64" in text, f"{address} {options}: {text}" + str(switch.ports())
        report = switch.end()
    print(report)
    assert all(port["sent_packets"] >= 12 for port in report["ports"]), report


def test_links_that_go_down_and_cards_that_are_taken_away_are_noticed(guest, hosts):
    west, east = hosts
    card = f"card{PLAIN[0]}"
    with Switch(guest, PLAIN, "l2") as switch:
        switch.table(*stations(hosts))
        assert west.ping("10.0.3.2")[0]
        guest.qmp("set_link", name=card, up=False)
        switch.wait_for_links([False, True])
        guest.qmp("set_link", name=card, up=True)
        switch.wait_for_links([True, True])
        answered, text = west.ping("10.0.3.2")
        assert answered, text + str(switch.ports())
        code, text = guest.run("namehop setup --undo --yes", check=False)
        assert code == 1 and "namehop-p4 (process" in text, text
        guest.qmp("device_del", id=card)
        assert switch.code() == 1
        assert f"port 0=pci://{switch.cards[0]} is down" in guest.run("cat /tmp/switch.err")
        guest.wait(f"test ! -e /sys/bus/pci/devices/{switch.cards[0]}")
        # No program holds the other card any more.
        assert "vfio-pci" in guest.run(f"readlink /sys/bus/pci/devices/{switch.cards[1]}/driver")
        guest.run(f"echo {switch.cards[1]} > /sys/bus/pci/drivers/vfio-pci/unbind")
