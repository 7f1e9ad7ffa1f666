"""Reads metrics as Prometheus' own parser of OpenMetrics does, and prints what they are."""

import sys

import urllib3
from prometheus_client.openmetrics.parser import text_string_to_metric_families

answer = urllib3.PoolManager().request("GET", sys.argv[1])
assert answer.headers["content-type"].startswith("application/openmetrics-text"), answer.headers
for family in text_string_to_metric_families(answer.data.decode()):
    print(family.name, family.type, len(family.samples))
