"""Asks a server in the ways that the published files describe, with the gRPC of Google.

usage: grpc_speaks.py FOLDER_OF_PROTOS ADDRESS
"""

import os
import subprocess
import sys
import tempfile

protos, address = sys.argv[1:]
made = tempfile.mkdtemp()
files = [
    "tollgate/v1/tollgate.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
    "envoy/config/core/v3/base.proto",
    "envoy/type/v3/ratelimit_unit.proto",
]
subprocess.run(
    [sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", f"--python_out={made}"]
    + [f"--grpc_python_out={made}"]
    + files,
    check=True,
)
# Another package is called envoy, and would be found first.
for folder, _, _ in os.walk(made):
    open(os.path.join(folder, "__init__.py"), "a").close()
sys.path.insert(0, made)

import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf import wrappers_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tollgate.v1 import tollgate_pb2 as pb
from tollgate.v1.tollgate_pb2_grpc import TollgateStub

channel = grpc.insecure_channel(address)
tollgate = TollgateStub(channel)


def user(name, **more):
    return pb.CheckRequest(path="/v1/items", attributes={"user": name}, **more)


# One by one.
answers = [tollgate.Check(user("alice", id=number)) for number in range(3)]
assert [answer.allowed for answer in answers] == [True, True, False], answers
assert [answer.id for answer in answers] == [0, 1, 2]
assert answers[0].rule == "per-user" and answers[0].limit == 2 and answers[0].remaining == 1
assert answers[2].retry == pb.RETRY_AFTER and answers[2].retry_after_ms > 0
assert tollgate.Check(user("bob", peek=True, with_rules=True)).rules[0].name == "per-user"

# In batches.
batch = pb.CheckBatchRequest(checks=[user("bob")] * 3)
assert [answer.allowed for answer in tollgate.CheckBatch(batch).answers] == [True, True, False]

# In a stream.
asked = [user(f"user-{number % 50}", id=number) for number in range(500)]
answers = list(tollgate.CheckStream(iter(asked)))
assert [answer.id for answer in answers] == list(range(500))
assert sum(answer.allowed for answer in answers) == 100

# What is under way.
export = pb.CheckRequest(path="/export")
held = tollgate.Check(export)
assert held.allowed and held.ticket and not tollgate.Check(export).allowed
ended = [pb.Ended(ticket=held.ticket, status=200), pb.Ended(ticket="none")]
assert list(tollgate.Report(pb.ReportRequest(ended=ended)).reported) == [True, False]
assert tollgate.Check(export).allowed

# What is wrong.
try:
    tollgate.Check(pb.CheckRequest(attributes={"usr": "alice"}))
    raise AssertionError("there is no such attribute")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    assert "did you mean `user`?" in error.details(), error

# As Envoy asks.
rls = rls_pb2_grpc.RateLimitServiceStub(channel)
entry = ratelimit_pb2.RateLimitDescriptor.Entry(key="k", value="v")
described = ratelimit_pb2.RateLimitDescriptor(entries=[entry])
look = ratelimit_pb2.RateLimitDescriptor(
    entries=[entry], hits_addend=wrappers_pb2.UInt64Value(value=0)
)
OK, OVER = rls_pb2.RateLimitResponse.OK, rls_pb2.RateLimitResponse.OVER_LIMIT


def limit(*descriptors):
    request = rls_pb2.RateLimitRequest(domain="shop", descriptors=descriptors)
    return rls.ShouldRateLimit(request)


assert limit(described).overall_code == OK
answer = limit(look)
assert answer.overall_code == OVER and answer.statuses[0].code == OVER
assert answer.statuses[0].current_limit.requests_per_unit == 1
assert answer.statuses[0].current_limit.unit == rls_pb2.RateLimitResponse.RateLimit.HOUR
assert answer.statuses[0].duration_until_reset.seconds > 0
assert any(header.key == "retry-after" for header in answer.response_headers_to_add)

# Whether it is well.
health = health_pb2_grpc.HealthStub(channel)
SERVING = health_pb2.HealthCheckResponse.SERVING
for name in ["", "tollgate.v1.Tollgate", "envoy.service.ratelimit.v3.RateLimitService"]:
    assert health.Check(health_pb2.HealthCheckRequest(service=name)).status == SERVING
assert next(health.Watch(health_pb2.HealthCheckRequest(service=""))).status == SERVING
try:
    health.Check(health_pb2.HealthCheckRequest(service="nobody"))
    raise AssertionError("there is no such service")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.NOT_FOUND, error

# What there is.
services = ProtoReflectionDescriptorDatabase(channel).get_services()
for name in ["tollgate.v1.Tollgate", "envoy.service.auth.v3.Authorization", "grpc.health.v1.Health"]:
    assert name in services, services
print("all is well")
