"""Applications for the tests: raw connections and Namehop commands that publish or answer, and queries about their faces and routes."""

from contextlib import contextmanager

from conftest import PATIENCE, wait_until
from packets import interest, read_element


def connect_application(router):
    """Connects to the router and returns the connection and its face id."""
    before = applications(router)
    connection = router.connect()
    connection.sendall(interest("/nobody/here"))
    read_element(connection)
    # The faces of the commands themselves are gone by the second query; this face stays.
    (face,) = (applications(router) & applications(router)) - before
    return connection, face


def applications(router):
    """Returns the ids of the application faces, including the face of the query itself."""
    return {face["face_id"] for face in router.json("face", "list") if face["local_uri"].startswith("unix://")}


def face_to(router, uri):
    """Waits for the face to a peer and returns it."""
    (face,) = wait_until(lambda: [face for face in router.json("face", "list") if face["remote_uri"] == uri], what=f"a face to {uri}")
    return face


def wait_for_route(router, prefix):
    """Waits until an application has registered the prefix."""
    wait_until(lambda: any(route["prefix"] == prefix for route in router.json("route", "list")), what=f"a route for {prefix}")


@contextmanager
def running(router, prefix, *arguments):
    """Runs a command that registers the prefix, and kills it at the end."""
    application = router.spawn(*arguments)
    try:
        wait_for_route(router, prefix)
        yield application
    finally:
        application.kill()
        application.wait(PATIENCE)


def published(router, prefix, content, *options):
    """Publishes the content with `namehop put` and waits for its route."""
    return running(router, prefix, "put", prefix, "--file", content, *options)


def serving(router, prefix):
    """Runs `namehop serve`, which answers pings, and waits for its route."""
    return running(router, prefix, "serve", prefix)


def same(fetched, file):
    """True if the bytes equal the content of the file."""
    return fetched == file.read_bytes()
