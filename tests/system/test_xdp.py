"""Network interfaces over AF_XDP sockets (xdp://)."""

from applications import published, same
from conftest import wait_until
from port_links import content, drops, fetch, is_connected, link, link_state, needs_root, route, start

pytestmark = needs_root


def test_packets_go_both_ways_and_the_link_is_followed(make_router, link, content):
    near, far = (start(make_router, link, end) for end in (0, 1))
    for router, end in ((near, 0), (far, 1)):
        local = link.local(end).replace("dev", "xdp") if end == 0 else link.local(end)
        face = router.json("face", "create", link.uri(1 - end), "--local", local, "--persistency", "permanent")["face_id"]
        route(router, f"/{end}", face)
    for server, client, prefix in ((near, far, "/1"), (far, near, "/0")):
        with published(server, prefix, content):
            assert same(fetch(client, prefix), content)
    assert drops(near, "malformed-frame") == 0
    link.set("down", ends=[0])
    wait_until(lambda: link_state(near) == "down", what="the link is down")
    link.set("up", ends=[0])
    wait_until(lambda: is_connected(near), what="the link is up")
    near.namehop("cs", "erase", "/")
    with published(far, "/0", content):
        assert same(fetch(near, "/0"), content)
