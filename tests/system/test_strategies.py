"""Strategies loaded at run time: load, choose, replace while packets flow, restart, unload."""

import shutil
import subprocess
from pathlib import Path

import pytest
from applications import serving
from conftest import run_namehop, wait_until

SDK = Path(__file__).parents[2] / "sdk"
CLANG = next((found for found in map(shutil.which, ["clang", *(f"clang-{version}" for version in range(14, 20))]) if found), None)


def compile_strategy(folder, source, name):
    """Compiles a C file and returns the object file."""
    assert CLANG, "clang is missing: run scripts/setup.sh test"
    target = folder / f"{name}.o"
    subprocess.run([CLANG, "-O2", "-target", "bpf", "-I", str(SDK), "-c", str(source), "-o", str(target)], check=True)
    return target


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def load(router, *arguments, check=True):
    """Loads a strategy, authorized by the token of the router's API instead of a listed key."""
    address = f"127.0.0.1:{router.metrics}"
    return router.namehop("strategy", "load", *arguments, "--token", router.folder / "state.json.api-token", "--api", address, check=check)


def loaded(router):
    return [strategy["strategy"] for strategy in router.json("strategy", "list", "--loaded")]


def choices(router):
    return {choice["prefix"]: choice["strategy"] for choice in router.json("strategy", "list")}


def ping(router):
    return run_namehop("ping", "/served", "--count", "2", "--interval", "10ms", transport=router.unix_uri, check=False)


def test_a_strategy_is_loaded_replaced_restored_and_unloaded(router, tmp_path):
    hedge = compile_strategy(tmp_path, SDK / "examples/hedge.c", "hedge")
    assert "strategy hedge loaded" in load(router, hedge).stdout
    router.namehop("strategy", "set", "/served", "hedge/v=1/patience~30")
    full = "/localhost/nfd/strategy/hedge/v=1/patience~30"
    assert choices(router)["/served"] == full
    assert loaded(router) == ["/localhost/nfd/strategy/hedge/v=1"]
    # The list shows the program's own description of its parameters.
    described = router.namehop("strategy", "list", "--loaded").stdout
    assert "patience~50\n        how long the first next hop has for its answer, in milliseconds; 1 to 10000" in described, described

    # A program with the same parameters may replace a loaded one; a program without them is refused.
    load(router, hedge)
    delay = compile_strategy(tmp_path, SDK / "strategies/delay.c", "delay")
    refused = load(router, delay, "--name", "hedge", check=False)
    assert refused.returncode != 0 and "unknown parameter 'patience'" in refused.stderr
    assert choices(router)["/served"] == full

    # The router refuses parameters out of range, and the unloading of a strategy in use.
    refused = router.namehop("strategy", "set", "/other", "hedge/v=1/patience~0", check=False)
    assert refused.returncode != 0 and "not a number from 1 to 10000" in refused.stderr
    refused = router.namehop("strategy", "unload", "hedge", check=False)
    assert refused.returncode != 0 and "/served" in refused.stderr

    router.stop()
    router.start()
    assert choices(router)["/served"] == full
    router.namehop("strategy", "unset", "/served")
    router.namehop("strategy", "unload", "hedge")
    router.stop()
    router.start()
    assert loaded(router) == []


def test_interests_go_where_a_loaded_strategy_sends_them(router, tmp_path):
    best_route = compile_strategy(tmp_path, SDK / "strategies/best-route.c", "best-route")
    reject = compile_strategy(tmp_path, SDK / "strategies/reject.c", "reject")
    producer = router.spawn("serve", "/served")
    try:
        load(router, best_route, "--name", "mine")
        router.namehop("strategy", "set", "/served", "mine")
        wait_until(lambda: ping(router).returncode == 0, what="answers through the loaded strategy")
        router.namehop("strategy", "unset", "/served")
        router.namehop("strategy", "unload", "mine")
        # A program loaded under the same name takes effect at once.
        load(router, reject, "--name", "mine")
        router.namehop("strategy", "set", "/served", "mine")
        assert ping(router).returncode != 0
    finally:
        producer.terminate()
        producer.wait()


def test_loading_takes_more_than_being_a_local_application(router, tmp_path):
    hedge = compile_strategy(tmp_path, SDK / "examples/hedge.c", "hedge")
    refused = router.namehop("strategy", "load", hedge, check=False)
    assert refused.returncode == 1 and "the token of the HTTP API" in refused.stderr, refused.stderr
    wrong = tmp_path / "wrong"
    wrong.write_text("0" * 64)
    refused = router.namehop("strategy", "load", hedge, "--token", wrong, "--api", f"127.0.0.1:{router.metrics}", check=False)
    assert refused.returncode == 1 and "the token is wrong" in refused.stderr, refused.stderr
    assert loaded(router) == []


def test_a_strategy_that_ended_the_router_is_not_loaded_again_by_itself(router, tmp_path):
    reject = compile_strategy(tmp_path, SDK / "strategies/reject.c", "reject")
    load(router, reject, "--name", "mine")
    router.namehop("strategy", "set", "/served", "mine")
    router.stop()
    # A record as the handler of fatal signals writes it: the name, and the CRC-32C of the object file.
    record = router.folder / "state.json.faulty-strategies"
    assert record.read_text() == ""
    record.write_text(f"mine {crc32c(reject.read_bytes()):08x}\n")
    router.start()
    assert loaded(router) == [] and "/served" not in choices(router)
    assert "it crashed the router earlier" in router.log.read_text()
    with serving(router, "/served"):
        assert ping(router).returncode == 0, "the prefix has the strategy of the shorter one"
    # An operator's explicit load clears the record.
    load(router, reject, "--name", "mine")
    assert record.read_text() == ""
    router.stop()
    router.start()
    assert loaded(router) == ["/localhost/nfd/strategy/mine/v=1"]
    assert choices(router)["/served"] == "/localhost/nfd/strategy/mine/v=1"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("while (namehop_random(context)) {} return 0;", "loop back"),
        ("return ((char *)context)[300];", "of the context, which has"),
    ],
)
def test_a_hostile_program_is_refused_with_the_reason(router, tmp_path, function, reason):
    source = tmp_path / "hostile.c"
    source.write_text(
        '#include "namehop_strategy.h"\n'
        'NAMEHOP_STRATEGY("hostile", 1, "a test", NAMEHOP_ON(NAMEHOP_INTEREST), 0);\n'
        f"NAMEHOP_PROGRAM(context) {{ {function} }}\n"
    )
    refused = load(router, compile_strategy(tmp_path, source, "hostile"), check=False)
    assert refused.returncode != 0 and reason in refused.stderr
    assert loaded(router) == []


def with_loaded(file, choice):
    return f'[[loaded_strategy]]\nname = "mine"\nfile = "{file}"\n[[strategy]]\nprefix = "/served"\nstrategy = "{choice}"\n'


def test_the_configuration_loads_strategies_and_says_who_uses_them(make_router, tmp_path):
    hedge = compile_strategy(tmp_path, SDK / "examples/hedge.c", "hedge")
    # Longer than the maximum length of a command.
    large = tmp_path / "large.o"
    large.write_bytes(hedge.read_bytes() + bytes(9_000))
    router = make_router(with_loaded(large, "mine/v=1/patience~30"))
    mine = "/localhost/nfd/strategy/mine/v=1"
    assert choices(router)["/served"] == f"{mine}/patience~30"
    assert loaded(router) == [mine]
    with serving(router, "/served"):
        assert ping(router).returncode == 0
    refused = router.namehop("strategy", "load", large, check=False)
    assert refused.returncode == 1 and "--token" in refused.stderr
    assert "strategy large loaded" in load(router, large, "--name", "large").stdout
    router.namehop("strategy", "unload", "large")
    # Changes at run time take precedence over the configuration, and survive a restart.
    reject = compile_strategy(tmp_path, SDK / "strategies/reject.c", "reject")
    router.namehop("strategy", "unset", "/served")
    load(router, reject, "--name", "mine")
    router.namehop("strategy", "set", "/served", "mine")
    router.stop()
    router.start()
    assert choices(router)["/served"] == mine
    with serving(router, "/served"):
        assert ping(router).returncode != 0, "it rejects"


@pytest.mark.parametrize(
    ("content", "choice", "line", "reason"),
    [
        (None, "mine", 3, "cannot read"),
        (b"no object file", "mine", 3, "not an object file"),
        (b"x" * 65_537, "mine", 3, "65536 bytes"),
        ("hedge", "mine/v=1/patience~0", 6, "not a number from 1 to 10000"),
        ("hedge", "mine/v=2", 6, "no such strategy"),
        ("hedge", "yours", 6, "no such strategy"),
    ],
)
def test_errors_in_configured_strategies_are_said_at_the_start(tmp_path, content, choice, line, reason):
    file, config = tmp_path / "mine.o", tmp_path / "namehop.toml"
    if content == "hedge":
        compile_strategy(tmp_path, SDK / "examples/hedge.c", "mine")
    elif content:
        file.write_bytes(content)
    config.write_text(with_loaded(file, choice))
    for command in [["config", "check", config], ["run", "--config", config]]:
        refused = run_namehop(*command, check=False)
        assert refused.returncode == 1 and reason in refused.stderr, refused.stderr
        assert f"namehop.toml:{line}:" in refused.stderr, refused.stderr
