"""manage.py FACE-URI REMOTE: management commands in both signed forms, and datasets, with python-ndn."""

from ndn import encoding as enc
from ndn import security as sec
from ndn.app_support import nfd_mgmt
from ndn.appv2 import pass_all
from ndn.encoding import parse_and_check_tl

from connect import application, arguments, report

uri, remote = arguments()
app = application(uri)


async def command(module, verb, form, **parameters):
    if form == "v0.3":
        name = nfd_mgmt.make_command_v2(module, verb, app.face, **parameters)
        signing = {"app_param": b"", "signer": sec.DigestSha256Signer(for_interest=True)}
    else:
        name = nfd_mgmt.make_command(module, verb, app.face, **parameters)
        signing = {}
    _, content, _ = await app.express(name, pass_all, lifetime=20_000, must_be_fresh=True, **signing)
    # python-ndn's parse_response requires a field order that ndn-cxx, and therefore NFD, does not use.
    answer = nfd_mgmt.ControlResponse.parse(parse_and_check_tl(memoryview(content), 0x65), ignore_critical=True)
    face = answer.body.face_id if answer.body else None
    report({"verb": f"{module}/{verb}", "form": form, "code": answer.status_code, "faceId": face})
    return face


async def dataset(name, message):
    got, content, _ = await app.express(f"/localhost/nfd/{name}", pass_all, can_be_prefix=True, must_be_fresh=True, lifetime=20_000)
    assert enc.Component.to_number(got[-1]) == 0
    return message.parse(content)


async def main():
    for form in ("v0.3", "v0.2"):
        face = await command("faces", "create", form, uri=remote)
        await command("rib", "register", form, name=f"/python/{form}", face_id=face, origin=255, cost=9, flags=1)
        rib = await dataset("rib/list", nfd_mgmt.RibStatus)
        report({"rib": {enc.Name.to_str(entry.name): [[route.face_id, route.origin, route.cost] for route in entry.routes] for entry in rib.entries}})
        await command("strategy-choice", "set", form, name=f"/python/{form}", strategy="/localhost/nfd/strategy/asf")
        choices = await dataset("strategy-choice/list", nfd_mgmt.StrategyChoiceMsg)
        report({"strategies": {enc.Name.to_str(choice.name): enc.Name.to_str(choice.strategy.name) for choice in choices.strategy_choices}})
        await command("rib", "unregister", form, name=f"/python/{form}", face_id=face, origin=255)
        await command("faces", "destroy", form, face_id=face)
    status = await dataset("status/general", nfd_mgmt.GeneralStatus)
    report({"general": {"in_interests": status.n_in_interests, "version": status.nfd_version}})
    faces = await dataset("faces/list", nfd_mgmt.FaceStatusMsg)
    report({"faces": [[face.face_id, face.uri] for face in faces.face_status]})
    app.shutdown()


app.run_forever(after_start=main())
