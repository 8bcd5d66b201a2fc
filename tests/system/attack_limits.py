"""What the router has to keep up while it is attacked. All thresholds of test_attack.py are here."""

# Of the exchanges that a well-behaved application gets answered alone, the part that it gets answered under attack.
KEPT = 0.9
# Longest time that a command of the operator may take, in seconds, the start of the program included: by `make attack-test`, and as
# a part of `make test`, which also runs where builds and other tests share the processors. It takes some hundredths.
COMMAND_SECONDS, SHORT_COMMAND_SECONDS = 1.0, 15.0
# Bytes that may wait for all slow peers together.
ALL_SEND_QUEUES_BYTES = 64 << 20
# Most resident memory of the router, part by part: some 60 MiB when idle; packet buffers (see test_strangers); the cache; send
# queues, with 16 KiB beside the budget for each of 300 slow readers; streams that were read ahead; and 64 MiB for records of
# faces, growing tables and fragments of the heap. Slow readers alone ask for more than twice as much.
RESIDENT_BYTES = (60 << 20) + (32768 * 2560 + 8192 * 9728) + (64 << 20) + ALL_SEND_QUEUES_BYTES + 300 * (16 << 10) + (64 << 20) + (64 << 20)
# Part of the packets sent that may have no counter: those under way when the counters are read.
UNCOUNTED = 0.005
# Time to end after SIGTERM, in seconds.
END_SECONDS = 60.0

# Seconds of each attack: one alone, all together, all together as a part of `make test`, and the well-behaved ones alone.
ALONE_SECONDS, TOGETHER_SECONDS, SHORT_SECONDS, PEACE_SECONDS = 2.5, 20, 6, 2
# Part of the packets that attackers send in a second, where it is a part of `make test`: that runs on any machine, among other
# programs, and whatever takes processors from the router as a whole takes exchanges from everybody.
SHORT_RATES = 0.4

# P4Runtime: seconds of each attack by `make attack-test` and as a part of `make test`; longest time of a write, a read and a packet of a
# controller that is connected, and until a new controller is served. It takes some hundredths.
P4_SECONDS, P4_SHORT_SECONDS = 10, 5
P4_ANSWER_SECONDS, P4_ENTRY_SECONDS = 2.0, 3.0
# Commands through a proxy: seconds of each flood by `make attack-test` and as a part of `make test`.
PROXY_SECONDS, PROXY_SHORT_SECONDS = 10, 3

# Exchanges a second of each well-behaved application, and the time in which an answer counts.
EXCHANGES_PER_SECOND = 200
LIFETIME_MS = 2000

# Descriptors that the router gets (soft limit, hard limit): fewer than the attackers have connections.
DESCRIPTORS = (1024, 8192)

LISTENERS = """
[faces.tcp]
listen = ["0.0.0.0:6363", "[::]:6363"]
[faces.udp]
listen = ["0.0.0.0:6363", "[::]:6363"]
[faces.websocket]
listen = []
[metrics]
listen = "127.0.0.1:9697"
"""
# Tables that fill up within the time of a test, as the usual ones do in an hour.
CONFIGURATION = f"""
[forwarding]
pit_capacity = 32768
[content_store]
capacity_packets = 8192
capacity_bytes = "64 MiB"
[faces]
all_send_queues_bytes = {ALL_SEND_QUEUES_BYTES}
{LISTENERS}"""

# Limits of control groups in which the router has to survive all attacks at once, in MiB: by `make attack-test`, and as a part of `make test`.
LITTLE_MEMORY, SHORT_LITTLE_MEMORY = [64, 128, 256], [64]
# Applications of the router's host that ask for large Data there and read none, and routes that another one registers.
LOCAL_READERS, LOCAL_ROUTES = 40, 50_000
