"""consume.py FACE-URI NAME [LIFETIME-MS]: sends one Interest with PyNDN; reports Data, Nack or timeout."""

from pyndn import Interest, Name

from connect import arguments, connect, report, run

uri, name, *rest = arguments()
face, answers = connect(uri), []
interest = Interest(Name(name))
interest.setCanBePrefix(False)
interest.setInterestLifetimeMilliseconds(int(rest[0]) if rest else 20_000)
face.expressInterest(
    interest,
    lambda _interest, data: answers.append({"result": "data", "content": data.getContent().toRawStr()}),
    lambda _interest: answers.append({"result": "timeout"}),
    lambda _interest, nack: answers.append({"result": "nack", "reason": nack.getReason()}),
)
run(face, lambda: answers)
report(answers[0])
