"""fetch.py FACE-URI NAME FILE [WINDOW]: finds the newest version by a prefix Interest, then fetches all segments with python-ndn."""

import asyncio
import time
from pathlib import Path

from ndn import encoding as enc
from ndn import types
from ndn.appv2 import pass_all

from connect import application, arguments, report

uri, name, file, *rest = arguments()
window = int(rest[0]) if rest else 16
app = application(uri)


async def get(interest_name, **options):
    for attempt in range(5):
        try:
            return await app.express(interest_name, pass_all, lifetime=4000, **options)
        except types.InterestTimeout:
            if attempt == 4:
                raise


async def main():
    started = time.monotonic()
    first, content, context = await get(name, can_be_prefix=True, must_be_fresh=True)
    last = enc.Component.to_number(context["meta_info"].final_block_id)
    prefix = first[:-1]
    pieces = {enc.Component.to_number(first[-1]): bytes(content)}
    missing = iter(number for number in range(last + 1) if number not in pieces)

    async def worker():
        for number in missing:
            _, content, _ = await get(prefix + [enc.Component.from_segment(number)])
            pieces[number] = bytes(content)

    await asyncio.gather(*(worker() for _ in range(window)))
    Path(file).write_bytes(b"".join(pieces[number] for number in range(last + 1)))
    report({"name": enc.Name.to_str(prefix), "segments": last + 1, "seconds": time.monotonic() - started})
    app.shutdown()


app.run_forever(after_start=main())
