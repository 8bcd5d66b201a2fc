"""consume.py FACE-URI NAME [LIFETIME-MS]: sends one Interest; reports Data, Nack or timeout."""

from ndn import encoding as enc
from ndn import types
from ndn.appv2 import pass_all

from connect import application, arguments, report

uri, name, *rest = arguments()
app = application(uri)


async def main():
    try:
        got, content, _ = await app.express(name, pass_all, must_be_fresh=True, lifetime=int(rest[0]) if rest else 20_000)
        report({"result": "data", "name": enc.Name.to_str(got), "bytes": len(content or b"")})
    except types.InterestNack as nack:
        report({"result": "nack", "reason": nack.reason})
    except types.InterestTimeout:
        report({"result": "timeout"})
    app.shutdown()


app.run_forever(after_start=main())
