"""Reads what is said about limits as structured fields."""

import sys

import http_sfv
import urllib3

url = sys.argv[1]
headers = {"X-Original-Method": "GET", "X-Original-URI": "/", "X-Original-Host": ""}
pool = urllib3.PoolManager()


def ask():
    answer = pool.request("GET", url, headers=headers, retries=False)
    fields = []
    for name in ("RateLimit", "RateLimit-Policy"):
        field = http_sfv.List()
        field.parse(answer.headers[name].encode())
        fields.append({item.value: dict(item.params) for item in field})
    return answer.status, *fields


status, left, policies = ask()
assert status == 200, status
assert policies == {
    "burst": {"q": 1, "w": 3600},
    "daily": {"q": 1000, "w": 86400},
    "slots": {"q": 5, "qu": "concurrent-requests"},
}, policies
assert left.keys() == policies.keys(), left
assert left["burst"]["r"] == 0 and 0 < left["burst"]["t"] <= 3600, left
assert left["slots"] == {"r": 4}, left

status, left, policies = ask()
assert status == 429, status
assert policies == {"burst": {"q": 1, "w": 3600}}, policies
assert left["burst"]["r"] == 0 and 0 < left["burst"]["t"] <= 3600, left
