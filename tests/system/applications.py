"""Applications of the tests: connected by hand, or commands of Namehop that publish and answer; and what the router says of them."""

from contextlib import contextmanager

from conftest import PATIENCE, wait_until
from packets import interest, read_element


def connect_application(router):
    """A raw connection and the number of its face."""
    before = applications(router)
    connection = router.connect()
    connection.sendall(interest("/nobody/here"))
    read_element(connection)
    # The commands' own faces come and go; this one stays.
    (face,) = (applications(router) & applications(router)) - before
    return connection, face


def applications(router):
    """Faces of applications, that of the asking command included."""
    return {face["face_id"] for face in router.json("face", "list") if face["local_uri"].startswith("unix://")}


def face_to(router, uri):
    """The face to a peer, which may not have appeared yet."""
    (face,) = wait_until(lambda: [face for face in router.json("face", "list") if face["remote_uri"] == uri], what=f"a face to {uri}")
    return face


def wait_for_route(router, prefix):
    """Until an application has registered the prefix."""
    wait_until(lambda: any(route["prefix"] == prefix for route in router.json("route", "list")), what=f"a route for {prefix}")


@contextmanager
def running(router, prefix, *arguments):
    """A command that registers the prefix and runs until the end."""
    application = router.spawn(*arguments)
    try:
        wait_for_route(router, prefix)
        yield application
    finally:
        application.kill()
        application.wait(PATIENCE)


def published(router, prefix, content, *options):
    """`namehop put` of the content, registered."""
    return running(router, prefix, "put", prefix, "--file", content, *options)


def serving(router, prefix):
    """`namehop serve`, which answers pings, registered."""
    return running(router, prefix, "serve", prefix)


def same(fetched, file):
    """Whether these bytes are those of the file."""
    return fetched == file.read_bytes()
