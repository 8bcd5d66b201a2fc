"""`namehop setup` on a host with an IOMMU and network cards: a card changes its driver and gets it back."""

import json
import re

CARDS = ["e1000e", "e1000e", "vmxnet3"]
STATE = "/var/lib/namehop-setup/state.json"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def card_of(guest, interface):
    return guest.run(f"basename $(readlink -f /sys/class/net/{interface}/device)").strip()


def driver(guest, card):
    return guest.run(f"basename $(readlink /sys/bus/pci/devices/{card}/driver) 2>/dev/null || true").strip()


def report(guest, options=""):
    code, text = guest.run(f"namehop setup --json {options}", check=False)
    return code, json.loads(text)


def test_what_is_there_is_found(guest):
    code, found = report(guest, "--huge-pages keep")
    assert code == 0 and found["plan"]["steps"] == []
    machine = found["machine"]
    cards = {card["interfaces"][0]: card for card in machine["nics"]}
    assert set(cards) == {"eth0", "eth1", "eth2"}
    assert {card["driver"] for card in cards.values()} == {"e1000e", "vmxnet3"}
    drivers = {card["driver"]: card["dpdk_driver"]["name"] for card in cards.values()}
    assert drivers == {"e1000e": "net_e1000_em", "vmxnet3": "net_vmxnet3"}
    groups = [card["iommu_group"] for card in cards.values()]
    assert None not in groups and len(set(groups)) == 3
    assert machine["vfio"]["module"] in ("available", "loaded") and machine["is_root"]
    assert "IOMMU" in guest.run("namehop setup")


def test_the_card_of_the_default_route_stays_unless_it_is_forced(guest):
    guest.run("ip addr add 192.0.2.1/24 dev eth1; ip link set eth1 up; ip route add default via 192.0.2.2")
    card = card_of(guest, "eth1")
    code, found = report(guest, "--huge-pages keep --nic eth1 --apply --yes")
    assert code == 1 and "default route" in found["plan"]["obstacles"][0], found
    assert driver(guest, card) == "e1000e"
    code, found = report(guest, f"--huge-pages keep --force-nic {card}")
    assert code == 0 and found["plan"]["obstacles"] == []
    guest.run("ip route del default; ip addr flush dev eth1; ip link set eth1 down")


def test_cards_and_pages_are_taken_and_given_back(guest):
    cards = [card_of(guest, "eth0"), card_of(guest, "eth2")]
    before = [driver(guest, card) for card in cards]
    pages = guest.run(f"cat {POOL}")
    files = guest.run("find /etc -type f | sort")
    chosen = f"--huge-pages 32MiB --nic {cards[0]} --nic eth2"
    done = guest.run(f"namehop setup {chosen} --apply --yes")
    assert len(re.findall("^done: ", done, re.MULTILINE)) == 7, done
    assert [driver(guest, card) for card in cards] == ["vfio-pci", "vfio-pci"]
    assert guest.run(f"cat {POOL}").strip() == "16"
    assert "eth0" not in guest.run("ls /sys/class/net") and guest.run("ls /dev/vfio | grep -c '^[0-9]'").strip() == "2"
    assert "Nothing to change" in guest.run(f"namehop setup --huge-pages 32MiB --nic {cards[0]} --nic {cards[1]}")

    # A card in use by a program is not given back: the kernel, and the command with it, would wait for the program.
    group = guest.run(f"basename $(readlink /sys/bus/pci/devices/{cards[0]}/iommu_group)").strip()
    guest.run(f"sleep 1000 3</dev/vfio/{group} & echo $! > /tmp/user")
    code, text = guest.run("namehop setup --undo --yes", check=False)
    assert code == 1 and "sleep (process" in text and driver(guest, cards[0]) == "vfio-pci", text
    guest.run("kill $(cat /tmp/user)")
    guest.run("namehop setup --undo --yes")
    assert [driver(guest, card) for card in cards] == before
    assert guest.run(f"cat {POOL}") == pages and guest.run("find /etc -type f | sort") == files
    guest.run(f"test ! -e {STATE}")
    assert "eth0" in guest.run("ls /sys/class/net")
    for card in cards:
        assert guest.run(f"cat /sys/bus/pci/devices/{card}/driver_override").strip() == "(null)"


def test_the_rule_for_the_next_start_does_the_same(guest):
    card = card_of(guest, "eth1")
    guest.run("namehop setup --huge-pages keep --nic eth1 --apply --yes")
    rule = guest.run(f"cat /etc/udev/rules.d/60-namehop-{card}.rules")
    guest.run("namehop setup --undo --yes")
    # The command that udev would run, with the rule's doubled `$` unescaped.
    command = rule.split("/bin/sh -c '")[1].split("'\"")[0].replace("$$", "$")
    guest.run(f"modprobe vfio-pci; echo vfio-pci > /sys/bus/pci/devices/{card}/driver_override")
    guest.run(f"/bin/sh -c '{command}'")
    assert driver(guest, card) == "vfio-pci"
    guest.run(f"/bin/sh -c '{command}'")
    assert driver(guest, card) == "vfio-pci", "a card that is in its hands already is left alone"
    guest.run(f"echo > /sys/bus/pci/devices/{card}/driver_override; echo {card} > /sys/bus/pci/drivers/vfio-pci/unbind")
    guest.run(f"echo {card} > /sys/bus/pci/drivers_probe")
    assert driver(guest, card) == "e1000e"
