"""Floods and other attacks on a router, and the service that its users get meanwhile.

`make test` runs all attacks at once, for some seconds. `make attack-test` also runs each attack alone, for longer;
`make attack-test ATTACK=slow-readers` runs only that one. The tests need root for network namespaces. Thresholds are in attack_limits; the
attacks with their rates are in attack_plans.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from attack_arena import ATTACKER, Arena, Battle
from attack_limits import (
    ALONE_SECONDS,
    COMMAND_SECONDS,
    KEPT,
    LITTLE_MEMORY,
    PEACE_SECONDS,
    RESIDENT_BYTES,
    SHORT_COMMAND_SECONDS,
    SHORT_LITTLE_MEMORY,
    SHORT_RATES,
    SHORT_SECONDS,
    TOGETHER_SECONDS,
    UNCOUNTED,
)
from attack_plans import PLANS
from conftest import run_namehop
from memory_group import MemoryGroup

# Empty: the short form. "every": all attacks, one by one and together. Otherwise the name of one attack.
CHOICE = os.environ.get("ATTACK", "")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="attacks need network namespaces, which need root"),
    pytest.mark.skipif(not Path(ATTACKER).exists(), reason="cargo build -p namehop-traffic --example attack"),
]


@pytest.fixture(scope="module")
def arena():
    with Arena() as arena:
        yield arena


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The operator's key and certificate, which the router trusts, and the key name that forged signatures claim."""
    folder = tmp_path_factory.mktemp("keys")
    certificate, locator, key = folder / "operator.ndncert", folder / "locator", folder / "operator.pem"
    run_namehop("key", "generate", "/net/operator", "--key", key, "--certificate", certificate)
    shown = run_namehop("key", "show", certificate).stdout
    locator.write_text(next(word for word in shown.split() if word.startswith("/net/operator/KEY/")))
    return SimpleNamespace(certificate=certificate, locator=locator, key=key)


@pytest.fixture(scope="module")
def peace(tmp_path_factory, arena, keys):
    """What the well-behaved applications get without any attack."""
    result = Battle(tmp_path_factory.mktemp("peace"), arena, keys, [], PEACE_SECONDS).run()
    show("nobody", result, result)
    assert not complaints(result, result), complaints(result, result)
    assert all(answered(victim) > 0.98 for victim in result.victims.values()), result.victims
    return result


def answered(victim):
    return victim.get("answered", 0) / max(1, victim.get("packets", 0))


def kept(peace, result):
    """Returns the share of exchanges that each victim keeps under attack, relative to its exchanges without attack."""
    return {name: answered(victim) / answered(peace.victims[name]) for name, victim in result.victims.items()}


def complaints(peace, result):
    """Returns a line for each violated requirement."""
    found = [result.problem] if result.problem else []
    found += [f"the attack {name} did not run: {sent['failed']}" for name, sent in result.sent.items() if "failed" in sent]
    for name, part in kept(peace, result).items():
        if part < KEPT:
            found.append(f"{name} keeps {part:.0%} of its exchanges")
    poisoned = sum(victim.get("poisoned", 0) for victim in result.victims.values())
    if poisoned:
        found.append(f"{poisoned} exchanges got the attacker's Data")
    limit = COMMAND_SECONDS if CHOICE else SHORT_COMMAND_SECONDS
    slow = [(seconds, command, failure) for seconds, command, failure in result.commands if failure or seconds > limit]
    if slow:
        worst = max(slow)
        found.append(f"{len(slow)} of {len(result.commands)} commands failed or were slow, for example {worst[1]} in {worst[0]:.1f} s {worst[2]}")
    if result.peak_bytes > RESIDENT_BYTES:
        found.append(f"{result.peak_bytes >> 20} MiB resident")
    if result.uncounted > UNCOUNTED * result.counted:
        found.append(f"{result.uncounted} of {result.counted} packets are in no counter")
    for name in result.attacks:
        counter = PLANS[name].counter
        # Beside other attacks this one may not reach the limit.
        if counter and len(result.attacks) == 1 and not any(reason == counter for _, reason in result.drops):
            found.append(f"{name} was not counted as {counter}")
    commanded = sorted(prefix for prefix in result.routes if prefix.startswith(("/attacker", "/net/operator/attacker")))
    if commanded:
        found.append(f"strangers made routes: {commanded[:5]}")
    if not result.problem and not {f"/operator/{number}" for number in range(result.added)} <= result.routes and not slow:
        found.append("routes that the operator added are not there")
    if result.exit_code != 0:
        found.append(f"the router ended with {result.exit_code}")
    if "panicked" in result.log:
        found.append("the router panicked: " + next(line for line in result.log.splitlines() if "panicked" in line))
    return found


def show(title, peace, result):
    """Prints what was sent, the drops by name, and the share that the well-behaved applications kept."""
    print(f"\n== attacked by {title}: {result.peak_bytes >> 20} MiB resident at most, {result.processor:.0%} of a processor, slowest command {max(result.commands)[0]:.2f} s")
    for name, sent in result.sent.items():
        print(f"  {'sent by ' + name:34}" + ", ".join(f"{key} {value}" for key, value in sent.items()))
    dropped = sorted(result.drops.items(), key=lambda item: -item[1])
    print("  dropped                           " + (", ".join(f"{reason} {count}" for (_, reason), count in dropped) or "nothing"))
    for name, part in kept(peace, result).items():
        victim = result.victims[name]
        details = ", ".join(f"{key} {victim.get(key)}" for key in ("packets", "answered", "nacks", "poisoned", "connections", "median_ms", "p99_ms"))
        print(f"  {'kept by ' + name:34}{part:4.0%}  {details}")
    for complaint in complaints(peace, result):
        print(f"  WRONG: {complaint}")


def fight(title, folder, arena, keys, peace, attacks, seconds, together=False, rates=1.0):
    result = Battle(folder, arena, keys, attacks, seconds, together, rates).run()
    show(title, peace, result)
    assert not complaints(peace, result), "\n".join(complaints(peace, result))


@pytest.mark.skipif(not CHOICE, reason="one by one by `make attack-test` only")
@pytest.mark.parametrize("attack", PLANS)
def test_one_attack(arena, keys, peace, tmp_path, attack):
    if CHOICE not in ("every", attack):
        pytest.skip("another one was chosen")
    fight(attack, tmp_path, arena, keys, peace, [attack], ALONE_SECONDS if CHOICE == "every" else SHORT_SECONDS)


@pytest.mark.skipif(CHOICE not in ("", "every"), reason="one attack was chosen")
def test_all_attacks_at_once(arena, keys, peace, tmp_path):
    seconds, rates = (TOGETHER_SECONDS, 1.0) if CHOICE else (SHORT_SECONDS, SHORT_RATES)
    fight("all at once", tmp_path, arena, keys, peace, list(PLANS), seconds, together=True, rates=rates)


@pytest.mark.skipif(CHOICE not in ("", "every", "memory"), reason="one attack was chosen")
@pytest.mark.parametrize("mebibytes", LITTLE_MEMORY if CHOICE else SHORT_LITTLE_MEMORY)
def test_little_memory(arena, keys, tmp_path, mebibytes):
    """All attacks at once, and local applications that take memory, in a memory-limited control group. The router survives and logs its
    reduced settings.
    """
    seconds, rates = (TOGETHER_SECONDS, 1.0) if CHOICE else (SHORT_SECONDS, SHORT_RATES)
    with MemoryGroup(mebibytes) as group:
        result = Battle(tmp_path, arena, keys, list(PLANS), seconds, together=True, rates=rates, group=group).run()
        kills, peak = group.kills(), group.peak_bytes()
    dropped = sorted(result.drops.items(), key=lambda item: -item[1])
    print(f"\n== {mebibytes} MiB: {result.peak_bytes >> 20} MiB resident and {peak >> 20} MiB in the group at most, {kills} killed, slowest command {max(result.commands)[0]:.2f} s")
    print("  dropped   " + ", ".join(f"{reason} {count}" for (_, reason), count in dropped))
    print("  answered  " + ", ".join(f"{name} {answered(victim):.0%}" for name, victim in result.victims.items()))
    failed = [command for command in result.commands if command[2]]
    print(f"  commands  {len(result.commands)}, {len(failed)} failed: {failed[:3]}")
    assert (kills, result.exit_code, result.problem) == (0, 0, ""), result.log[-2000:]
    assert "panicked" not in result.log
    assert "[content_store] capacity_bytes: " in result.log and "instead of 512 MiB" in result.log, result.log[:4000]
