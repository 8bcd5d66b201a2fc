"""Captures as ports (pcap://): frames from one file, frames into another."""

import struct
import subprocess

from applications import published
from conftest import wait_until
from packets import interest, segment_interest, split_element
from port_links import GROUP, drops, needs_root, ports

SENDER = "02:00:00:00:00:99"
BIG_ENDIAN = ">"


def frame(packet, to=GROUP):
    return bytes.fromhex((to + SENDER).replace(":", "")) + b"\x86\x24" + packet


def write_capture(path, frames, order="<"):
    with open(path, "wb") as file:
        file.write(struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, (captured, length) in enumerate(frames):
            file.write(struct.pack(order + "IIII", number, 0, len(captured), length) + captured)


def read_capture(path):
    contents, frames = path.read_bytes(), []
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", contents[:24])
    assert (magic, link) == (0xA1B23C4D, 1)
    at = 24
    while at + 16 <= len(contents):
        _, _, there, length = struct.unpack("<IIII", contents[at : at + 16])
        assert there == length
        frames.append(contents[at + 16 : at + 16 + there])
        at += 16 + there
    return frames


def whole(frame):
    return frame, len(frame)


def start(make_router, tmp_path, uri):
    # The router opens the port at its start, and reads the capture when the port has a face.
    router = make_router(ports(0, f'[[port]]\nuri = "{uri}"\n'))
    assert drops(router, "malformed-frame") == 0
    return router


def test_a_capture_is_answered_by_another(make_router, tmp_path):
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcap"
    file = tmp_path / "object"
    file.write_bytes(b"content")
    # Interests for the one existing segment, and for segments that do not exist.
    frames = [whole(frame(segment_interest("/seg", 1, n, nonce=n.to_bytes(4, "big")))) for n in range(200)]
    cut = frame(interest("/seg/cut/off"))
    other = b"\xff" * 6 + bytes.fromhex(SENDER.replace(":", "")) + b"\x08\x00" + bytes(46)
    frames[7:7] = [(cut[:20], len(cut)), whole(other), whole(b"short")]
    write_capture(source, frames, order=BIG_ENDIAN)
    uri = f"pcap://{source}?out={target}&mac=02:00:00:00:00:42"
    router = start(make_router, tmp_path, uri)
    refused = router.namehop("face", "create", f"ether://[{GROUP}]", "--local", "pcap:///etc/passwd", check=False)
    assert refused.returncode != 0 and "[[port]]" in refused.stderr, refused.stderr
    answers = lambda: [frame for frame in read_capture(target) if b"content" in frame]
    with published(router, "/seg", file, "--object-version", 1):
        face = router.json("face", "create", f"ether://[{GROUP}]", "--local", uri)["face_id"]
        wait_until(answers, what="the answer is in the other capture")
    # To the group, from the port's address.
    [answer] = answers()
    assert answer[:14] == bytes.fromhex("01005e0017aa" "020000000042" "8624")
    counters = lambda: next(each for each in router.json("face", "list") if each["face_id"] == face)
    wait_until(lambda: counters()["in_interests"] == 200, what="all of it was read")
    # The truncated record; then a record of another protocol, and one that is too short for any protocol.
    wait_until(lambda: drops(router, "malformed-frame") == 1, what="the record that was cut off is counted")
    assert drops(router, "not-ndn-frame") == 2
    assert "reached the end of the capture" in router.log.read_text()
    # The face's counters agree with both files. They exclude headers, padding, and frames that are no packets.
    assert (counters()["out_data"], counters()["out_bytes"]) == (1, length_of_packet(answer[14:]))
    assert counters()["in_bytes"] == sum(length_of_packet(packet[14:]) for packet, _ in frames if len(packet) > 40 and packet != other)
    assert len(read_capture(target)) == 1


def length_of_packet(payload):
    """Returns the length of the packet without the padding of a short frame."""
    return len(split_element(payload)[1])


@needs_root
def test_a_full_disk_keeps_nobody_waiting(make_router, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=True)
    try:
        source = tmp_path / "in.pcap"
        names = [f"/absent/{n}" for n in range(400)]
        write_capture(source, [whole(frame(interest(name, nonce=n.to_bytes(4, "big")))) for n, name in enumerate(names)])
        target = f'[[port]]\nuri = "pcap://?out={folder}/out.pcap"\nmulticast = true\n'
        router = make_router(ports(0, f'[[port]]\nuri = "pcap://{source}"\n', target))
        group = f"ether://[{GROUP}]"
        sinks = lambda: [each["face_id"] for each in router.json("face", "list") if GROUP in each["remote_uri"]]
        wait_until(sinks, what="the face of the port")
        router.namehop("route", "add", "/absent", *sinks())
        router.namehop("face", "create", group, "--local", f"pcap://{source}")
        wait_until(lambda: drops(router, "send-failed") > 0, what="frames that were not written are counted")
        assert router.namehop("status").returncode == 0
    finally:
        router.kill()
        subprocess.run(["umount", folder], check=True)
