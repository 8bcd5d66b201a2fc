"""Unsolicited senders on a port with on-demand faces: only idle faces are evicted, as on sockets."""

import json
import subprocess
import sys

from conftest import PATIENCE, ROOT
from port_links import connect, drops, link, needs_root, start

pytestmark = needs_root

# Senders on the link, each with its own MAC address. There is no route, so the router answers each Interest with a Nack.
SENDERS = """
import json, os, socket, sys, time
sys.path.insert(0, sys.argv[1])
from packets import interest
from port_links import ETHERTYPE, frame
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
link.bind((sys.argv[2], ETHERTYPE))
router = sys.argv[3]

def address(number):
    return "02:01:" + number.to_bytes(4, "big").hex(":")

def send(number):
    link.send(frame(router, address(number), ETHERTYPE, interest("/no/route", nonce=os.urandom(4))))

def asks(number, attempts=20):
    own = bytes.fromhex(address(number).replace(":", ""))
    link.settimeout(0.2)
    for _ in range(attempts):
        send(number)
        end = time.monotonic() + 0.2
        try:
            while time.monotonic() < end:
                if link.recv(2000)[:6] == own:
                    return True
        except TimeoutError:
            pass
    return False

idle = list(range(1, 10))
for sender in idle:
    # Who has sent a second packet is no less worth than others, but goes on no more.
    assert asks(sender) and asks(sender)
steady = list(range(11, 16))
for sender in steady:
    assert asks(sender) and asks(sender)
print(json.dumps([address(sender) for sender in steady]), flush=True)
sys.stdin.readline()
lost = 0
for number in range(4000):
    send(1000 + number)
    if number % 500 == 0:
        lost += sum(not asks(sender) for sender in steady)
# Who is new gets in, at the latest when it asks again, and stays.
newcomer = 10_000
result = {"lost": lost, "newcomer": asks(newcomer) and asks(newcomer), "address": address(newcomer)}
print(json.dumps(result), flush=True)
sys.stdin.read()
"""


def strangers(router):
    """Returns the face ids of the unsolicited senders, by MAC address."""
    faces = router.json("face", "list")
    return {face["remote_uri"][9:-1]: face["face_id"] for face in faces if face["remote_uri"].startswith("ether://[02:01:")}


def test_forged_frames_push_nobody_out_and_lock_nobody_out(make_router, link):
    # 256 faces, of which a quarter is reserved. On-demand faces on ports may use a third of the rest.
    places = 64
    on_demand = f'[faces]\nmax_faces = 256\n[[port]]\nuri = "{link.local(0)}"\non_demand = true'
    near, far = start(make_router, link, 0, on_demand), start(make_router, link, 1)
    there, _ = connect(near, far, link)
    command = [*link.inside(1), sys.executable, "-c", SENDERS, str(ROOT / "tests/system"), link.devices[1], link.address(0)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    steady = json.loads(process.stdout.readline())
    before = strangers(near)
    assert set(steady) <= set(before) and len(before) == 14
    process.stdin.write("\n")
    process.stdin.flush()
    result = json.loads(process.stdout.readline())
    assert (result["lost"], result["newcomer"]) == (0, True)
    after = strangers(near)
    assert len(after) == places
    assert {sender: after.get(sender) for sender in steady} == {sender: before[sender] for sender in steady}
    assert result["address"] in after
    assert drops(near, "face-evicted") > 0 and drops(near, "too-many-faces") > 0
    assert there in [face["face_id"] for face in near.json("face", "list")], "permanent faces are nobody's place"
    assert "limit of on-demand faces on ports reached" in near.log.read_text()
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
