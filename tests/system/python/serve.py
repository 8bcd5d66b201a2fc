"""serve.py FACE-URI NAME FILE [no-register]: publishes the file in segments with python-ndn."""

import asyncio
from pathlib import Path

from ndn import encoding as enc
from ndn import security as sec

from connect import application, arguments, report

SEGMENT = 7000
uri, name, file, *rest = arguments()
app = application(uri)
content = Path(file).read_bytes()
name = enc.Name.normalize(name) + [enc.Component.from_version(1)]
last = (len(content) - 1) // SEGMENT
signer = sec.DigestSha256Signer()


def make(number):
    return app.make_data(
        name + [enc.Component.from_segment(number)],
        content[number * SEGMENT : (number + 1) * SEGMENT],
        signer=signer,
        freshness_period=60000,
        final_block_id=enc.Component.from_segment(last),
    )


packets = [make(number) for number in range(last + 1)]


def on_interest(interest_name, _parameters, reply, _context):
    tail = interest_name[len(name) :]
    number = enc.Component.to_number(tail[0]) if tail else 0
    if number <= last:
        reply(packets[number])


async def main():
    app.attach_handler(name[:-1], on_interest)
    registered = True if rest == ["no-register"] else await app.register(name[:-1])
    port = app.face.transport.get_extra_info("sockname")[1] if uri.startswith("udp4") else None
    report({"serving": enc.Name.to_str(name), "registered": registered, "port": port})


app.run_forever(after_start=main())
