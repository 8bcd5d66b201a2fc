"""What a router must still do under attack: all thresholds and durations of the attack tests."""

# Under attack, a well-behaved application must complete at least this share of the exchanges that it completes without attack.
KEPT = 0.9
# Longest time of an operator's command in seconds, including program start: in `make attack-test`, and in `make test`, which also runs
# where builds and other tests share the CPUs. A command usually takes some hundredths of a second.
COMMAND_SECONDS, SHORT_COMMAND_SECONDS = 1.0, 15.0
# Maximum number of bytes queued for all slow peers together.
ALL_SEND_QUEUES_BYTES = 64 << 20
# Maximum resident memory of the router: some 60 MiB when idle; packet buffers (see test_strangers); the cache; send queues, with 16 KiB
# beyond the budget for each of 300 slow readers; data read ahead from streams; and 64 MiB for face records, growing tables and heap
# fragmentation. Slow readers alone ask for more than twice as much.
RESIDENT_BYTES = (60 << 20) + (32768 * 2560 + 8192 * 9728) + (64 << 20) + ALL_SEND_QUEUES_BYTES + 300 * (16 << 10) + (64 << 20) + (64 << 20)
# Maximum share of the sent packets that may be in no counter, because they are in flight when the counters are read.
UNCOUNTED = 0.005
# Time to end after SIGTERM, in seconds.
END_SECONDS = 60.0

# Duration of the attacks in seconds: one alone, all together, all together in `make test`, and the well-behaved applications alone.
ALONE_SECONDS, TOGETHER_SECONDS, SHORT_SECONDS, PEACE_SECONDS = 2.5, 20, 6, 2
# Share of the attack rates that `make test` uses. It runs on any host beside other programs, and a router with less CPU time answers fewer
# exchanges of every application.
SHORT_RATES = 0.4

# P4Runtime: seconds of each attack in `make attack-test` and in `make test`; longest time of a write, a read and a packet of a connected
# controller, and until a new controller is served. Each usually takes some hundredths of a second.
P4_SECONDS, P4_SHORT_SECONDS = 10, 5
P4_ANSWER_SECONDS, P4_ENTRY_SECONDS = 2.0, 3.0
# Commands through a proxy: seconds of each flood in `make attack-test` and in `make test`.
PROXY_SECONDS, PROXY_SHORT_SECONDS = 10, 3

# Exchanges per second of each well-behaved application, and the time within which an answer counts.
EXCHANGES_PER_SECOND = 200
LIFETIME_MS = 2000

# File descriptor limits of the router (soft, hard): fewer than the attackers have connections.
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
# Small tables that fill up within a test, as default tables fill up in an hour.
CONFIGURATION = f"""
[forwarding]
pit_capacity = 32768
[content_store]
capacity_packets = 8192
capacity_bytes = "64 MiB"
[faces]
all_send_queues_bytes = {ALL_SEND_QUEUES_BYTES}
{LISTENERS}"""

# Memory limits of control groups, in MiB, in which the router must survive all attacks at once: in `make attack-test`, and in `make test`.
LITTLE_MEMORY, SHORT_LITTLE_MEMORY = [64, 128, 256], [64]
# Number of local applications that request large Data and read none, and number of routes that another one registers.
LOCAL_READERS, LOCAL_ROUTES = 40, 50_000
