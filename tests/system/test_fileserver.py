"""`namehop traffic fileserver`, used by NDNts' client for ndn6-file-server and by Namehop's own client."""

import json
import os
import signal

from applications import running
from conftest import PATIENCE, digest


def served(router, folder, *options):
    return running(router, "/files", "traffic", "fileserver", "/files", folder, *options)


def test_ndnts_lists_and_fetches(router, clients, tmp_path):
    content = os.urandom(500_000)
    folder = tmp_path / "served"
    (folder / "sub" / "below").mkdir(parents=True)
    (folder / "sub" / "content.bin").write_bytes(content)
    (folder / "sub" / "ünïcode name").write_text("x")
    # Neither a regular file nor a directory.
    (folder / "sub" / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "sub" / "pipe")
    got = tmp_path / "got.bin"
    with served(router, folder):
        listed, fetched, refused = clients.run("ndnts", "files", router.unix_uri, "/files", "sub", "content.bin", got)
    assert listed["isDir"] and not listed["isFile"]
    assert listed["entries"] == [
        {"name": "below", "isDir": True}, {"name": "content.bin", "isDir": False}, {"name": "ünïcode name", "isDir": False},
    ]
    assert got.read_bytes() == content
    assert (fetched["isFile"], fetched["size"], fetched["segmentSize"]) == (True, len(content), 8000)
    assert fetched["lastSeg"] == (len(content) - 1) // 8000
    assert fetched["mtime"] == (folder / "sub" / "content.bin").stat().st_mtime_ns // 1_000_000
    assert bytes.fromhex(fetched["part"]) == content[12345:17345]
    # This client ignores ContentType: it fails because the empty Content of the Nack contains no name.
    assert "TLV-TYPE 0x07 missing" in refused["error"], refused


def test_several_files_at_once(router, content, tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "one").write_bytes(content.read_bytes())
    (folder / "two").write_bytes(os.urandom(1_000_000))
    into = tmp_path / "made" / "into"
    with served(router, folder, "--json") as server:
        report = router.json("traffic", "fetch", "/files/one", "/files/two", "--into", into)
        assert digest(into / "one") == digest(content)
        assert digest(into / "two") == digest(folder / "two")
        total = report["total"]
        losses = total["overtaken"] + total["timeouts"] + total["nacks"]
        assert total["interests"] == total["data"] + total["unneeded"] + losses, total
        # A directory listing is fetched like any other object.
        assert router.namehop("cat", "/files/32=ls", text=False).stdout == b"one\0two\0"
        # A changed file is fetched again, although caches have the old version.
        (folder / "two").write_text("changed")
        router.namehop("traffic", "fetch", "/files/two", "--into", into)
        assert (into / "two").read_text() == "changed"
        outside = router.namehop("traffic", "fetch", "/files/%2E%2E%2Fgot", "--into", into, check=False)
        assert outside.returncode == 2
        missing = router.namehop("traffic", "fetch", "/files/three", "--into", into, check=False)
        assert missing.returncode == 1 and sorted(os.listdir(into)) == ["one", "two"]
        server.send_signal(signal.SIGINT)
        counted = json.loads(server.communicate(timeout=PATIENCE)[0])
    assert counted["nacks"] >= 1 and counted["listings"] == 1 and counted["failed"] == 0, counted
    assert counted["bytes"] >= content.stat().st_size + 1_000_000, counted
