"""Configured peers with host names: the router resolves the name, and follows it when its address changes."""

import os
import shutil
from pathlib import Path

import pytest
from applications import published, same
from conftest import wait_until
from port_links import Link, content, ip, needs_root  # noqa: F401

pytestmark = needs_root


class Hosts:
    """The hosts file of a network namespace, which `ip netns exec` mounts over the host's file."""

    def __init__(self, namespace):
        self.folder = Path("/etc/netns") / namespace

    def __enter__(self):
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def set(self, *lines):
        (self.folder / "hosts").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def link():
    with Link(f"sh{os.getpid()}") as link:
        for end, addresses in enumerate((["192.0.2.9"], ["192.0.2.1", "192.0.2.2"])):
            for address in addresses:
                ip("-n", link.namespaces[end], "address", "add", f"{address}/24", "dev", link.devices[end])
        yield link


def peers(router):
    return [face["remote_uri"] for face in router.json("face", "list") if face["remote_uri"].startswith(("udp4:", "tcp4:"))]


@pytest.mark.parametrize("scheme", ["udp", "tcp4"])
def test_a_face_follows_the_addresses_of_its_host(make_router, link, content, scheme):  # noqa: F811
    near, far = make_router(name="near", start=False), make_router(name="far", start=False)
    far.extra = f'[faces.udp]\nlisten = ["0.0.0.0:{far.udp}"]\n[faces.tcp]\nlisten = ["0.0.0.0:{far.tcp}"]\n'
    port = far.udp if scheme == "udp" else far.tcp
    peer = f"{scheme}://far.example:{port}"
    near.extra = f'[[face]]\nuri = "{peer}"\n[[route]]\nprefix = "/far"\nnexthop = "{peer}"\n'
    for end, router in ((0, near), (1, far)):
        router.prefix = link.inside(end)
    far.start()
    with Hosts(link.namespaces[0]) as hosts, published(far, "/far/object", content):
        # The name cannot be resolved yet.
        hosts.set("127.0.0.1 localhost")
        near.start()
        assert peers(near) == []
        wait_until(lambda: "cannot create a face to this host yet" in near.log.read_text(), what="the log says so")
        for lines, address in (
            (["192.0.2.1 far.example"], "192.0.2.1"),
            # The face's address is still one of the host's addresses.
            (["192.0.2.2 far.example", "192.0.2.1 far.example"], "192.0.2.1"),
            (["192.0.2.2 far.example"], "192.0.2.2"),
        ):
            hosts.set(*lines)
            kind = "udp4" if scheme == "udp" else scheme
            wait_until(lambda: peers(near) == [f"{kind}://{address}:{port}"], what=f"the face to {address}")
            near.namehop("cs", "erase", "/")
            assert same(near.namehop("cat", "/far/object", text=False).stdout, content)
    assert near.log.read_text().count("host name resolved") == 2
