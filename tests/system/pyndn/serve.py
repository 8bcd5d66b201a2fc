"""serve.py FACE-URI PREFIX: registers the prefix with PyNDN and answers each Interest with `here`."""

from pyndn import Data, Name

from connect import arguments, connect, new_key_chain, report, run

uri, prefix = arguments()
face, key_chain = connect(uri), new_key_chain()
face.setCommandSigningInfo(key_chain, key_chain.getDefaultCertificateName())


def on_interest(_prefix, interest, face, _filter_id, _filter):
    data = Data(interest.getName())
    data.setContent(b"here")
    key_chain.sign(data)
    face.putData(data)


face.registerPrefix(
    Name(prefix),
    on_interest,
    lambda _prefix: report({"registered": False}),
    lambda _prefix, _id: report({"registered": True}),
)
run(face)
