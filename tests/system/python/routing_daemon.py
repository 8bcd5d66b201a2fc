"""routing_daemon.py FACE-URI [CODE]: stands in for a routing daemon at /localhost/nlsr and reports every command it receives.

It accepts the same commands as NLSR and ndn-dv: signed Interests with six components. CODE is the status code of its responses (default
200); 0 disables responses.
"""

from ndn import encoding as enc
from ndn import security as sec
from ndn.app_support import nfd_mgmt
from ndn.appv2 import ValidResult, pass_all
from ndn.encoding import parse_and_check_tl

from connect import application, arguments, report

PREFIX = "/localhost/nlsr"
uri, *rest = arguments()
code = int(rest[0]) if rest else 200
app = application(uri)


def on_command(name, _parameters, reply, context):
    parameters = nfd_mgmt.ControlParameters.parse(bytes(enc.Component.get_value(name[4]))).cp
    signature = context["sig_ptrs"].signature_info
    report({
        "components": len(name),
        "module": enc.Component.to_str(name[2]),
        "verb": enc.Component.to_str(name[3]),
        "name": enc.Name.to_str(parameters.name),
        "cost": parameters.cost,
        "origin": parameters.origin,
        "signature": signature.signature_type,
        "timed": signature.signature_time is not None,
    })
    if code == 0:
        return
    response = nfd_mgmt.ControlResponse()
    response.status_code, response.status_text = code, "as the test says"
    response.body = parameters
    content = enc.TlvModel.encode(response)
    content = bytes(enc.Component.from_bytes(content, 0x65))
    reply(app.make_data(name, content, signer=sec.DigestSha256Signer(), freshness_period=1000))


async def has_right_digest(name, signature, _context):
    return ValidResult.PASS if await sec.sha256_digest_checker(name, signature) else ValidResult.FAIL


async def main():
    app.attach_handler(PREFIX, on_command, has_right_digest)
    name = nfd_mgmt.make_command_v2("rib", "register", app.face, name=PREFIX, origin=128, cost=0)
    signer = sec.DigestSha256Signer(for_interest=True)
    _, content, _ = await app.express(name, pass_all, lifetime=20_000, must_be_fresh=True, app_param=b"", signer=signer)
    answer = nfd_mgmt.ControlResponse.parse(parse_and_check_tl(memoryview(content), 0x65), ignore_critical=True)
    report({"registered": answer.status_code})


app.run_forever(after_start=main())
