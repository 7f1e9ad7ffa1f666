//! Inputs that are good, until somebody changes them.

pub(crate) const RULES: &[&str] = &[
    include_str!("../../../cli/tests/rules/shop.yaml"),
    "version: 1
namespace: shop-api
client_ip: { trusted_proxies: [10.0.0.0/8], header: x-forwarded-for, ipv6_host: 64 }
tiers:     { from: claims.plan, known: [free, pro, enterprise], else: free }
defaults:
  mode: enforce   # as usual
  consistency: shared
rules:
  - name: per-user
    match: { path: /v1/** }
    key: [user]
    limit: { free: 100/min, pro: 10000/min, enterprise: unlimited }
    burst: { pro: 500 }
    overrides: { u1: 7/s, u2: 9/min }

  - name: login-failures
    match: { method: POST, path: /login }
    key: [ip, body.username]
    limit: 10/15min
    algorithm: sliding_log
    count_if: response.status in [401, 403]
    block_for: 15min
    deny: { message: \"Too many. Try again in {retry_after}.\" }

  - { name: slots, match: { path: '/v1/{kind}/**' }, key: [path.kind], concurrent: 5, expires: 10min }
  - { name: smooth, key: [], limit: 50/s, algorithm: leaky_bucket, queue: 200 }
  - name: month
    key: [account]
    limit: { free: 10k/month, pro: 5M/month, enterprise: unlimited }
    window: { calendar: month, timezone: Europe/Berlin, anchor: account.billing_day }
    warn_at: [80%, 95%]
  - { name: net, key: [ip/24], limit: 6000/min, mode: shadow, key_missing: { together: x } }
  - { name: points, match: { when: \"!('x-a' in request.headers)\" }, key: [user], cost: { graphql: {} }, limit: 1k/min }
tests:
  - name: a free user gets 100 a minute
    given: { request: \"GET /v1/items user=u9 claims.plan=free\", times: 101, over: 1s }
    expect: { allowed: 100, denied_by: per-user, retry_after: \"<= 1s\" }
",
    "rules:
  - first_match: true
    rules:
      - { name: a, match: { path: '/v1/users/{id}/*', user: [u1, u2] }, key: [path.id], limit: 5/s }
      - { name: b, match: { path: ['/v1/**', /login], user: 'u*' }, key: [user], limit: 9/s }
      - { name: c, match: { host: '*.example.com', ip: [192.0.2.0/24, '::/0'] }, key: [], limit: 7/s }
  - { name: d, match: { header.x-a: b, query.a: b }, key: [header.x-a], limit: 5/s, cost: { attribute: body.tokens } }
  - { name: e, match: { method: [GET, POST], account: acme }, key: [method, host], limit: 5/h }
  - { name: f, key: [user], key_missing: ip, limit: 3/s, cost: { expression: 'size(request.path)' } }
",
    "namespace = 'a'
[tiers]
from = 'claims.plan'
known = ['free', 'pro']
else = 'free'
[[rules]]
name = 'a'
key = ['user']
limit = { free = '5/s', pro = '9/s' }
match.path = '/v1/**'
[[rules]]
name = 'b'
key = []
concurrent = 5
",
    r#"{"rules": [{"name": "a", "key": ["user", "ip"], "limit": "5/s", "burst": 7},
  {"name": "b", "match": {"path": "/v1/\u007bid\u007d"}, "key": ["path.id"], "limit": "5/s"}]}
"#,
];

pub(crate) const CONDITIONS: &[&str] = &[
    "!('x-internal' in request.headers) && request.path.startsWith('/v1')",
    "response.status in [401, 403] || response.headers['x-a'] == '1'",
    "has(claims.plan) ? claims.plan == 'pro' : size(attributes) > 3",
    "int(body.n) * 2 + 1 >= 7 && double(body.n) / 0.5 < 1e3",
    "size(request.path) + (user == 'a' ? 10 : -3 % 2)",
    "attributes['claims.plan'].endsWith('o') && string(7) != '8' && client.ip.contains('.')",
];

pub(crate) const QUERIES: &[&str] = &[
    "query A($n: Int = 5) { a(first: $n) { b { c } ...F } } fragment F on X { d(last: 3) { e } }",
    "{ a b: c(x: {y: [1, 2.5e3, \"z\", ENUM, $v, null]}) @skip(if: true) { ... on D { e } } }",
    "mutation { a(input: \"\"\"block\"\"\") { id } } subscription S { b }",
];

pub(crate) const HEADERS: &[&str] = &[
    "192.0.2.1, 10.0.0.2, 10.0.0.3",
    "for=192.0.2.60;proto=http;by=203.0.113.43, for=\"[2001:db8::1]:4711\"",
    "unknown, [::1]:80, 192.0.2.1:443, ::ffff:10.0.0.1\n10.0.0.9",
    "GET /v1/items?a=b user=u1 header.x-a='b c' ip=192.0.2.1",
];

pub(crate) const OTHERS: &[&str] = &[
    "domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 100 }
    descriptors:
      - { key: path, value: /login, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 5 } }
",
    "- namespace: shop
  max_value: 10
  seconds: 60
  conditions: [\"req.method == 'GET'\"]
  variables: [user_id]
",
    "http {
  limit_req_zone $binary_remote_addr zone=a:10m rate=5r/s;
  limit_conn_zone $server_name zone=b:1m;
  geo $limited { default 1; 10.0.0.0/8 0; }
  map $limited $key { 0 ''; 1 $binary_remote_addr; }
  server { server_name a.example.com; location /login { limit_req zone=a burst=5 nodelay; limit_conn b 3; } }
}
",
];
