"""events.py FACE-URI URI KIND: reports face events with python-ndn until an event of this kind for the face to URI, for at most 8 s.

The first line says that the program is ready.
"""

import asyncio

from ndn import encoding as enc
from ndn import types
from ndn.app_support.nfd_mgmt import FaceEventNotification
from ndn.appv2 import pass_all

from connect import application, arguments, report

uri, watched, last = arguments()
app = application(uri)
STREAM = "/localhost/nfd/faces/events"


async def get(name, **options):
    while True:
        try:
            return await app.express(name, pass_all, lifetime=20_000, **options)
        except types.InterestTimeout:
            pass


def tell(name, content):
    event = FaceEventNotification.parse(content).event
    sequence = enc.Component.to_number(name[-1])
    report({
        "sequence": sequence, "kind": event.face_event_kind.name, "face_id": event.face_id, "uri": event.uri,
        "local_uri": event.local_uri, "scope": event.face_scope.name,
    })
    if event.uri == watched and event.face_event_kind.name == last:
        app.shutdown()
    return sequence


async def main():
    asyncio.get_running_loop().call_later(8, app.shutdown)
    # The creation of this program's own face is the newest event.
    name, content, _ = await get(STREAM, can_be_prefix=True, must_be_fresh=True)
    report({"ready": True})
    sequence = tell(name, content)
    while True:
        name, content, _ = await get(enc.Name.normalize(STREAM) + [enc.Component.from_sequence_num(sequence + 1)])
        sequence = tell(name, content)


app.run_forever(after_start=main())
