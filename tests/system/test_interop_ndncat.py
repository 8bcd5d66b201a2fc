"""`namehop cat` and `namehop put` with NDNts and python-ndn: 10 MB over every transport, in both directions."""

import json
import os
import re
import select

import pytest
from applications import wait_for_route
from conftest import PATIENCE, TEN_MEGABYTES, digest, run_namehop

TRANSPORTS = ["unix", "tcp", "udp", "ws"]


@pytest.fixture
def put(router):
    """Starts `namehop put` over a transport and returns the versioned name that it prints."""
    running = []

    def start(name, file, *options, transport="unix"):
        publisher = router.spawn("put", name, "--file", file, "--quiet", "--transport", router.uri(transport), *options)
        running.append(publisher)
        assert select.select([publisher.stderr], [], [], 20)[0], "the name is printed"
        printed = publisher.stderr.readline().decode().strip()
        assert re.fullmatch(rf"{name}/v=\d+", printed), printed
        wait_for_route(router, name)
        return printed

    yield start
    for publisher in running:
        publisher.kill()
        publisher.wait(PATIENCE)


@pytest.mark.parametrize("producer, consumer", [("unix", "unix"), ("tcp", "tcp"), ("ws", "ws"), ("unix", "udp")])
def test_namehop_fetches_what_ndnts_serves(router, clients, content, tmp_path, producer, consumer):
    clients.start("ndnts", "serve", router.uri(producer), "/video/object", content)
    wait_for_route(router, "/video/object")
    got = tmp_path / "got.bin"
    result = run_namehop("cat", "/video/object", "--output", got, "--json", "--transport", router.uri(consumer))
    assert digest(got) == digest(content)
    statistics = json.loads(result.stderr)
    assert statistics["bytes"] == TEN_MEGABYTES and statistics["discovery"] == "metadata" and statistics["unverified"] == 0


@pytest.mark.parametrize("producer, consumer", [("unix", "unix"), ("tcp", "tcp"), ("ws", "ws"), ("tcp", "udp")])
def test_ndnts_fetches_what_namehop_puts(router, clients, put, content, tmp_path, producer, consumer):
    put("/video/object", content, transport=producer)
    got = tmp_path / "got.bin"
    clients.run("ndnts", "fetch", router.uri(consumer), "/video/object", got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("consumer", ["unix", "tcp", "udp"])
def test_python_fetches_what_namehop_puts(router, clients, put, content, tmp_path, consumer):
    put("/video/object", content)
    got = tmp_path / "got.bin"
    clients.run("python", "fetch", router.uri(consumer), "/video/object", got)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("consumer", ["unix", "ws"])
def test_namehop_fetches_what_python_serves(router, clients, content, tmp_path, consumer):
    """python-ndn serves no metadata, so the version is discovered with a prefix Interest."""
    served = clients.start("python", "serve", router.unix_uri, "/python/object", content)["serving"]
    got = tmp_path / "got.bin"
    arguments = ["--output", got, "--json", "--transport", router.uri(consumer)]
    statistics = json.loads(run_namehop("cat", "/python/object", "--discovery", "prefix", *arguments).stderr)
    assert digest(got) == digest(content) and statistics["discovery"] == "prefix"
    # A versioned name needs no discovery.
    run_namehop("cat", served, *arguments)
    assert digest(got) == digest(content)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_namehop_to_namehop(router, put, content, tmp_path, transport):
    versioned = put("/own/object", content, transport="tcp" if transport == "udp" else transport)
    for name in ("/own/object", versioned):
        got = tmp_path / "got.bin"
        run_namehop("cat", name, "--output", got, "--quiet", "--transport", router.uri(transport))
        assert digest(got) == digest(content)


def test_signed_objects_of_namehop_are_verified_by_ndnts(router, clients, put, tmp_path):
    """`namehop put` signs with a key from NDNts. NDNts and `namehop cat` verify the object, and refuse it with another certificate."""
    content = tmp_path / "signed.bin"
    content.write_bytes(os.urandom(100_000))
    stems = [tmp_path / "signer", tmp_path / "other"]
    for stem in stems:
        clients.run("ndnts", "key", f"/keys/{stem.name}", stem)
    signer, other = stems
    put("/signed/object", content, "--signing-key", f"{signer}.pem", "--certificate", f"{signer}.ndncert")
    got = tmp_path / "got.bin"
    clients.run("ndnts", "fetch", router.unix_uri, "/signed/object", got, signer)
    assert digest(got) == digest(content)
    refused = clients.run("ndnts", "fetch", router.unix_uri, "/signed/object", got, other)
    assert "error" in refused[0], refused
    arguments = ["cat", "/signed/object", "--output", got, "--attempts", "1"]
    router.namehop(*arguments, "--certificate", f"{signer}.ndncert")
    assert digest(got) == digest(content)
    refused = router.namehop(*arguments, "--certificate", f"{other}.ndncert", check=False)
    assert refused.returncode == 1, refused


def test_the_smallest_objects(router, clients, put, tmp_path):
    """An empty object, and an object of one byte more than a segment."""
    for name, size in [("empty", 0), ("over", 8001)]:
        content, got = tmp_path / name, tmp_path / "got.bin"
        content.write_bytes(os.urandom(size))
        put(f"/small/{name}", content)
        clients.run("ndnts", "fetch", router.unix_uri, f"/small/{name}", got)
        assert digest(got) == digest(content), name
        got.unlink()
        router.namehop("cat", f"/small/{name}", "--output", got)
        assert digest(got) == digest(content), name
