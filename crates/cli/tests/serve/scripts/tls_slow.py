"""A client of Redis that does not read for a while, over TLS.

Says "read" once it has all answers, and "cut" once the server has let go of those it did not take.
"""

import http.client
import socket
import ssl
import sys
import time

folder, resp_port, status_port, what = sys.argv[1:]
context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
COMMAND = b"COMMAND DOCS\r\n"
TIMES = 10000


def connect():
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(30)
    raw.connect(("localhost", int(resp_port)))
    return context.wrap_socket(raw, server_hostname="localhost")


def metric(name):
    status = http.client.HTTPSConnection("localhost", int(status_port), context=context, timeout=20)
    status.request("GET", "/metrics")
    lines = status.getresponse().read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name))


def is_stuck():
    """Whether the server writes nothing any more."""
    looks = {metric('tollgate_door_seconds_count{door="resp"}') for _ in range(10)}
    return len(looks) == 1 and looks != {before}


def wait(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"


one = connect()
one.sendall(COMMAND + b"PING\r\n")
answer = b""
while not answer.endswith(b"+PONG\r\n"):
    answer += one.recv(65536)
length = len(answer) - len(b"+PONG\r\n")

slow = connect()
before = metric('tollgate_door_seconds_count{door="resp"}')
slow.sendall(COMMAND * TIMES)
# The server has more to say than anybody takes.
wait(is_stuck)
if what == "reads":
    left = length * TIMES
    while left > 0:
        left -= len(slow.recv(65536))
    assert left == 0
    print("read")
else:
    wait(lambda: metric('tollgate_connections{door="resp"}') == 1)
    print("cut")
