"""Python's own TLS, OpenSSL, at the doors: HTTP/1.1, RESP through redis-py, gRPC through grpcio.

Says as JSON what each of them was answered.
"""

import http.client
import json
import ssl
import sys

import grpc
import redis

folder, http_port, resp_port, grpc_port, who = sys.argv[1:]


def read(name):
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
files = {}
if who != "nobody":
    context.load_cert_chain(f"{folder}/{who}.pem", f"{folder}/{who}.key")
    files = {"ssl_certfile": f"{folder}/{who}.pem", "ssl_keyfile": f"{folder}/{who}.key"}


def ask_http():
    connection = http.client.HTTPSConnection("localhost", int(http_port), context=context, timeout=20)
    connection.request("POST", "/v1/peek", b"{}")
    answer = connection.getresponse()
    shown = connection.sock.getpeercert()["serialNumber"]
    return {"remaining": json.load(answer)["remaining"], "serial": shown}


def ask_resp():
    client = redis.Redis(
        host="localhost", port=int(resp_port), ssl=True, ssl_ca_certs=f"{folder}/ca.pem", **files
    )
    return {"remaining": client.execute_command("TG.CHECK")[2]}


def ask_grpc():
    own = {} if who == "nobody" else {"private_key": read(f"{who}.key"), "certificate_chain": read(f"{who}.pem")}
    credentials = grpc.ssl_channel_credentials(root_certificates=read("ca.pem"), **own)
    with grpc.secure_channel(f"localhost:{grpc_port}", credentials) as channel:
        # Empty messages ask whether all is well, and about a request without attributes.
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        check = channel.unary_unary("/tollgate.v1.Tollgate/Check")
        stream = channel.stream_stream("/tollgate.v1.Tollgate/CheckStream")
        answers = [check(b"", timeout=20), next(stream(iter([b""]), timeout=20))]
        return {"health": list(health(b"", timeout=20)), "answers": [list(it) for it in answers]}


def told(ask):
    try:
        return ask()
    except (OSError, ssl.SSLError, http.client.HTTPException, redis.ConnectionError) as error:
        return {"error": str(error)}
    except grpc.RpcError as error:
        return {"error": error.code().name}


print(json.dumps({"http": told(ask_http), "resp": told(ask_resp), "grpc": told(ask_grpc)}))
