"""Asks twice for what may be had once in two seconds, and is let in after one wait as told."""

import sys

import urllib3

url = sys.argv[1]
headers = {"X-Original-Method": "GET", "X-Original-URI": "/", "X-Original-Host": ""}
pool = urllib3.PoolManager()

first = pool.request("GET", url, headers=headers, retries=False)
assert first.status == 200, first.status

# One try more: without the wait, it would be denied as well, and raise.
retries = urllib3.Retry(1, respect_retry_after_header=True)
second = pool.request("GET", url, headers=headers, retries=retries)
assert second.status == 200, second.status
statuses = [entry.status for entry in second.retries.history]
assert statuses == [429], statuses
