"""Memif faces between processes, and routers without any port."""

import time
from pathlib import Path

import pytest
from applications import published, same, wait_for_route
from conftest import PATIENCE, PROGRAM, wait_until
from port_links import GROUP, content, drops, fetch, is_connected, needs_root, ports, threads

pytestmark = needs_root


def memif(folder, role="server", number=7):
    suffix = "&role=client" if role == "client" else ""
    return f"memif://{folder}/memif.sock?id={number}{suffix}"


@pytest.fixture
def memif_pair(make_router, tmp_path):
    """A memif server and a client, connected, with a route from the client to the server."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    server.namehop("face", "create", memif(tmp_path), "--persistency", "permanent")
    client.namehop("face", "create", memif(tmp_path, "client"), "--persistency", "permanent")
    client.namehop("route", "add", "/object", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    return server, client


def test_an_object_through_memif(memif_pair, content):
    server, client = memif_pair
    with published(server, "/object", content):
        assert same(fetch(client, "/object"), content)
    assert drops(client, "malformed-frame") == drops(server, "malformed-frame") == 0


def test_the_client_of_a_memif_restarts(memif_pair, content):
    server, client = memif_pair
    with published(server, "/object", content):
        for end in (client.stop, client.kill):
            end()
            wait_until(lambda: not is_connected(server), what="the server notices")
            client.log.unlink()
            client.start()
            wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
            wait_for_route(client, "/object")
            assert same(fetch(client, "/object"), content)


def test_the_server_of_a_memif_restarts(memif_pair, content):
    server, client = memif_pair
    for end in (server.stop, server.kill):
        end()
        wait_until(lambda: not is_connected(client), what="the client notices")
        server.log.unlink()
        server.start()
        wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
        client.namehop("cs", "erase", "/object")
        with published(server, "/object", content):
            assert same(fetch(client, "/object"), content)


def test_a_memif_that_breaks_under_load(memif_pair, content):
    server, client = memif_pair
    for _ in range(3):
        with published(server, "/object", content):
            client.namehop("cs", "erase", "/object")
            fetching = client.spawn("cat", "/object")
            time.sleep(0.05)
            server.kill()
            fetching.kill()
            fetching.wait(PATIENCE)
        wait_until(lambda: not is_connected(client), what="the client notices")
        server.log.unlink()
        server.start()
        wait_until(lambda: is_connected(server) and is_connected(client), what="connected again")
    assert client.process.poll() is None


def test_ethernet_faces_through_memif(make_router, tmp_path, content):
    """A memif can also carry Ethernet frames, with any number of faces."""
    server, client = make_router(ports(0), name="server"), make_router(ports(1), name="client")
    group = f"ether://[{GROUP}]"
    server.namehop("face", "create", group, "--local", memif(tmp_path))
    client.namehop("face", "create", group, "--local", memif(tmp_path, "client"))
    wait_until(lambda: is_connected(server) and is_connected(client), what="the memif connects")
    client.namehop("route", "add", "/object", group)
    with published(server, "/object", content):
        assert same(fetch(client, "/object"), content)
    refused = server.namehop("face", "create", memif(tmp_path), check=False)
    assert refused.returncode != 0 and "in use for the other kind" in refused.stderr, refused.stderr


def has_dpdk(router):
    """True if the router has loaded DPDK's libraries."""
    return "librte_eal" in Path(f"/proc/{router.process.pid}/maps").read_text()


def test_dpdk_is_loaded_with_the_first_port_and_may_be_installed_later(make_router, tmp_path):
    router, shim = make_router(ports(0), start=False), tmp_path / "libnamehop_dpdk.so"
    router.prefix = ["env", f"NAMEHOP_DPDK={shim}"]
    router.start()
    refused = router.namehop("face", "create", memif(tmp_path), check=False)
    assert refused.returncode != 0, refused.stdout
    for part in ("ports need DPDK", str(shim), "No such file", "install the package namehop-ports", "'make ports'"):
        assert part in refused.stderr, refused.stderr
    assert not has_dpdk(router)
    shim.symlink_to(Path(PROGRAM).with_name(shim.name))
    router.namehop("face", "create", memif(tmp_path))
    assert has_dpdk(router)


def test_a_router_for_sockets_only_starts_no_dpdk(router):
    assert not {"ports", "worker", "eal-intr-thread"} & set(threads(router))
    assert not has_dpdk(router)
    with open(f"/proc/{router.process.pid}/status") as status:
        # Anonymous memory only: the program's own pages are many in a test build. The first packet makes the router prepare 20 MiB that it
        # accesses randomly: dead nonces and request counters.
        resident = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    assert resident < 46_000, f"{resident} kB"
    refused = router.namehop("face", "create", "ether://[02:00:00:00:00:01]", check=False)
    assert refused.returncode != 0 and "dev://" in refused.stderr, refused.stderr
    assert "ports" not in threads(router), "a refused face starts nothing"
