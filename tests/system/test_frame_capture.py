"""namehop capture: frames that a router receives and sends, in a file that tshark reads."""

import signal
import subprocess

import pytest
from applications import connect_application, published
from conftest import wait_until
from packets import interest, split_element

SEGMENTS, SEGMENT_BYTES = 20, 1_000
RECEIVED, SENT = "1", "2"
# Registers a dissector as real NDN dissectors do.
DISSECTOR = """
local ndn = Proto("ndntest", "NDN, as far as the test needs it")
local kind = ProtoField.uint8("ndntest.kind", "Kind")
ndn.fields = {kind}
function ndn.dissector(bytes, packet, tree) tree:add(ndn, bytes()):add(kind, bytes(0, 1)) end
DissectorTable.get("ethertype"):add(0x8624, ndn)
"""


def object_of(tmp_path):
    file = tmp_path / "object"
    file.write_bytes(bytes(SEGMENTS * SEGMENT_BYTES))
    return file


def start_capture(router, file, *options):
    """Starts a capture and waits until it runs."""
    process = router.spawn("capture", "-w", str(file), *options, text=True)
    line = process.stderr.readline()
    assert line.startswith("capturing frames under "), line
    return process


def end(process):
    """Stops a capture. Returns the numbers of frames written and lost."""
    process.send_signal(signal.SIGINT)
    return outcome(process)


def outcome(process):
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    words = err.splitlines()[-1].split()
    assert words[1:3] == ["frames", "captured,"] and words[4] == "dropped", err
    return int(words[0]), int(words[3])


def tshark(file, *fields, options=()):
    command = ["tshark", "-r", str(file), "-n", "-T", "fields", "-E", "separator=/t", *options]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_tshark_reads_what_the_router_received_and_sent(router, tmp_path, workers):
    file = tmp_path / "all.pcapng"
    with published(router, "/captured", object_of(tmp_path), "-s", str(SEGMENT_BYTES)):
        capture = start_capture(router, file, "--name", "/captured")
        router.namehop("cat", "/captured")
        wait_until(lambda: file.exists() and len(tshark(file, "frame.number")) >= 4 * SEGMENTS, what="frames are written")
        written, lost = end(capture)
    fields = ["frame.interface_name", "frame.interface_description", "frame.packet_flags_direction", "sll.pkttype", "sll.etype", "data.data"]
    frames = tshark(file, *fields)
    assert (len(frames), lost) == (written, 0)
    kinds = {}
    # The face of the consumer may be closed before the router describes it, so its address may be missing.
    described = [face for face, uri, *_ in frames if uri]
    assert described
    for face, uri, direction, way, ethertype, data in frames:
        assert int(ethertype, 0) == 0x8624, ethertype
        assert uri.startswith("fd://") or face not in described, (face, uri)
        assert {"0": RECEIVED, "4": SENT}[way] == str(int(direction, 0)), "the header and the block agree"
        kind, _, rest = split_element(bytes.fromhex(data.replace(":", "")))
        assert rest == b"", "frames are whole"
        kinds[face, way] = kinds.get((face, way), 0) + 1
    # The faces of consumer and producer: Interests in and out, Data in and out.
    assert len({face for face, _ in kinds}) == 2
    assert all(count >= SEGMENTS for count in kinds.values()) and len(kinds) == 4, kinds
    times = [float(time) for [time] in tshark(file, "frame.time_epoch")]
    assert times == sorted(times) or workers > 1

    script = tmp_path / "ndntest.lua"
    script.write_text(DISSECTOR)
    dissected = tshark(file, "ndntest.kind", options=["-X", f"lua_script:{script}"])
    assert len(dissected) == written and all(int(kind) in (5, 6, 0x64) for [kind] in dissected), "by EtherType"


def test_frames_are_chosen_cut_and_counted(router, tmp_path):
    connection, own_face = connect_application(router)
    with connection, published(router, "/chosen", object_of(tmp_path), "-s", str(SEGMENT_BYTES)):
        file = tmp_path / "chosen.pcapng"
        capture = start_capture(router, file, "--face", str(own_face), "--snaplen", "20", "--count", "5")
        router.namehop("cat", "/chosen")
        for number in range(10):
            connection.sendall(interest(f"/nobody/has/this/{number}"))
        assert outcome(capture) == (5, 0)
        frames = tshark(file, "frame.interface_name", "frame.cap_len", "frame.len")
        assert len(frames) == 5
        for face, captured, length in frames:
            assert (face, int(captured)) == (f"face-{own_face}", 16 + 20) and int(length) > 36

        file = tmp_path / "sample.pcapng"
        capture = start_capture(router, file, "--sample", "0.25", "--name", "/nobody")
        for number in range(2_000):
            connection.sendall(interest(f"/nobody/{number}"))
        wait_until(lambda: file.exists() and len(tshark(file, "frame.number")) >= 250, what="a quarter of the frames is written")
        # Interests and the same number of Nacks.
        written, lost = end(capture)
        assert lost == 0 and 250 <= written <= 1_500


def test_a_pipe_gets_it_and_refusals_say_why(router, tmp_path):
    connection, own_face = connect_application(router)
    with connection:
        capture = router.spawn("capture", "-w", "-", "--count", "3")
        assert capture.stderr.readline().startswith(b"capturing")
        refused = router.namehop("capture", "-w", str(tmp_path / "second"), check=False)
        assert refused.returncode == 1 and "a capture is running" in refused.stderr
        for number in range(10):
            connection.sendall(interest(f"/nobody/{number}"))
        out, _ = capture.communicate(timeout=60)
    piped = tmp_path / "piped.pcapng"
    piped.write_bytes(out)
    assert len(tshark(piped, "frame.number")) == 3
    timed = router.namehop("capture", "-w", str(tmp_path / "timed"), "--duration", "100ms")
    assert "0 frames captured, 0 dropped" in timed.stderr and tshark(tmp_path / "timed", "frame.number") == []
    gone = router.namehop("capture", "-w", str(tmp_path / "x"), "--face", "99999", check=False)
    assert gone.returncode == 1 and "face list" in gone.stderr
    unwritable = router.namehop("capture", "-w", str(tmp_path / "no" / "folder"), check=False)
    assert unwritable.returncode == 1 and "cannot write" in unwritable.stderr
