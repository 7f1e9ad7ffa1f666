mod hostile;
mod loading;

use super::*;
use crate::fmt::format;
use crate::rule_set::RuleSet;

fn limitador(namespace: Option<&str>) -> ImportKind {
    ImportKind::Limitador { namespace: namespace.map(str::to_owned) }
}

/// The rule file and the notes, both as they are.
fn imported(kind: ImportKind, text: &str) -> (String, Vec<String>) {
    let imported = import(kind, "old.conf", text).unwrap_or_else(|error| panic!("{error}"));
    let notes = imported.notes.iter().map(ToString::to_string).collect();
    let again = format(&Source::new("a.yaml", imported.yaml.as_str()));
    assert_eq!(again.as_ref(), Ok(&imported.yaml), "what comes out is canonical");
    loads(&imported.yaml);
    (imported.yaml, notes)
}

/// What comes out is a rule file.
#[track_caller]
fn loads(yaml: &str) {
    if let Err(error) = RuleSet::parse(yaml) {
        panic!("{error}\n{yaml}");
    }
}

/// The rules of a file without what is above them.
fn rules(kind: ImportKind, text: &str) -> String {
    let (yaml, _) = imported(kind, text);
    yaml.split_once("rules:\n").map(|(_, rules)| rules.to_owned()).unwrap_or_default()
}

fn refused(kind: ImportKind, text: &str) -> String {
    import(kind, "old.conf", text).unwrap_err().to_string()
}

#[test]
fn descriptors_of_envoy_become_alternatives() {
    let (yaml, notes) = imported(ImportKind::Envoy, ENVOY);
    assert_eq!(
        yaml,
        "\
# Imported from old.conf, a domain of envoyproxy/ratelimit.
# Left out: `method-delete`: its limit was 0, and no rule denies every request.
version: 1
namespace: shop

rules:
  - group: by-plan
    first_match: true
    rules:
      - name: plan-pro
        match: { domain: shop, descriptor_keys: plan, descriptor.plan: pro }
        key: []
        limit: 600/min
        algorithm: fixed_window

      # No limit for these, and so none of those below.
      - name: plan-staff
        match: { domain: shop, descriptor_keys: plan, descriptor.plan: staff }
        key: []
        limit: unlimited

      - name: plan-trial
        match: { domain: shop, descriptor_keys: plan, descriptor.plan: trial* }
        key: [descriptor.plan]
        limit: 10/h
        algorithm: fixed_window

      - name: plan-edu
        match: { domain: shop, descriptor_keys: plan, descriptor.plan: edu* }
        key: []
        limit: 9/d
        algorithm: fixed_window

      - name: plan
        match: { domain: shop, descriptor_keys: plan }
        key: [descriptor.plan]
        limit: 60/min
        algorithm: fixed_window

  - name: pro-user
    match: { domain: shop, descriptor_keys: plan/user, descriptor.plan: pro }
    key: [descriptor.user]
    limit: 20/s
    algorithm: fixed_window
    mode: shadow

  # Replaced other limits, which `replaces` named: now all count.
  - name: remote_address
    match: { domain: shop, descriptor_keys: remote_address }
    key: [descriptor.remote_address]
    limit: 5000/30d
    algorithm: fixed_window

  - name: method-post
    match: { domain: shop, descriptor_keys: method, descriptor.method: POST }
    key: []
    limit: 5/s
    algorithm: fixed_window
"
    );
    assert_eq!(
        notes,
        [
            "line 25: `replaces` is not carried over: both limits count; put both rules into one group with `first_match: true`, this one first",
            "line 29: `colour` of a descriptor is not known; look up what it does, and write it by hand",
            "line 33: `detailed_metric` is left out; nothing is to be done: a rule's own metrics are always there",
            "line 34: the limit `method-DELETE` of 0 denied every request, and is left out; deny these requests in front of Tollgate"
        ]
    );
}

#[test]
fn values_that_lead_nowhere_have_no_limit() {
    let text = "\
domain: a
descriptors:
  - { key: a, value: b, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: a, descriptors: [{ key: c, rate_limit: { unit: day, requests_per_unit: 2 } }] }
  - { key: d, descriptors: [{ key: d, rate_limit: { unit: week, requests_per_unit: 2 } }] }
";
    let (yaml, notes) = imported(ImportKind::Envoy, text);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("line 5: a descriptor with one key twice"), "{notes:?}");
    let nowhere = "match: { domain: a, descriptor_keys: a/c, descriptor.a: b }
        key: [descriptor.c]
        limit: unlimited";
    assert!(yaml.contains(nowhere), "{yaml}");
}

#[test]
fn the_first_way_is_taken_although_another_asks_for_more() {
    let text = "\
domain: a
descriptors:
  - { key: a, value: x*, descriptors: [{ key: b, rate_limit: { unit: day, requests_per_unit: 1 } }] }
  - { key: a, descriptors: [{ key: b, value: y, rate_limit: { unit: day, requests_per_unit: 2 } }] }
";
    let (yaml, _) = imported(ImportKind::Envoy, text);
    assert!(
        yaml.contains("when: '!(has(descriptor.a) && descriptor.a.startsWith(\"x\"))'"),
        "{yaml}"
    );
}

#[test]
fn limits_of_limitador_become_rules() {
    let (yaml, notes) = imported(limitador(Some("shop")), LIMITADOR);
    assert_eq!(
        yaml,
        "\
# Imported from old.conf, limits of Limitador.
# Windows began with the first request of a key; here they begin at multiples of their length.
version: 1
namespace: shop

rules:
  - name: req.method-post-per-user_id
    match: { descriptor.req.method: POST, when: has(descriptor.plan) && descriptor.plan != \"staff\" }
    key: [descriptor.user_id]
    limit: 10/min
    algorithm: fixed_window

  # Had another condition: descriptors[1].x == 'y'
  # Was also counted by: size(x)
  - name: slow-things
    match: { when: has(descriptor.path) && descriptor.path.startsWith('/slow') }
    key: [descriptor.account]
    limit: 5/15min
    algorithm: fixed_window
    mode: shadow
"
    );
    assert_eq!(
        notes,
        [
            "line 12: the condition `descriptors[1].x == 'y'` is not carried over: its rule only counts; say it with `match` or `when`, and take `mode: shadow` away",
            "line 13: the variable `size(x)` is not carried over: its rule only counts; add what it stands for to `key`, and take `mode: shadow` away"
        ]
    );
    let other = "  - name: all\n    key: []\n    limit: 1/90s\n    algorithm: fixed_window\n";
    assert_eq!(rules(limitador(Some("other")), LIMITADOR), other);
    let choose = "choose one of the namespaces in this file: other, shop";
    assert_eq!(refused(limitador(None), LIMITADOR), choose);
    assert_eq!(refused(limitador(Some("third")), LIMITADOR), choose);
}

#[test]
fn limits_of_nginx_become_rules_of_their_places() {
    let (yaml, notes) = imported(ImportKind::Nginx, NGINX);
    assert_eq!(
        yaml,
        "\
# Imported from old.conf.
version: 1
namespace: nginx

rules:
  - name: conns
    match: { host: [shop.example, www.shop.example] }
    key: [ip]
    concurrent: 20

  - name: conns-2
    match: { host: \"*.cdn.example\", when: '!request.path.startsWith(\"/dl\")' }
    key: [ip]
    concurrent: 20

  # Had another condition: not location ~* \\.(png|jpg)$
  - name: one
    match:
      host: [shop.example, www.shop.example]
      when: '!request.path.startsWith(\"/api/\") && request.path != \"/login\"'
    key: [ip]
    limit: 10/s
    algorithm: leaky_bucket
    queue: 0
    mode: shadow

  - name: one-2
    match:
      host: [shop.example, www.shop.example]
      path: /api/**
      when: request.path != \"/api/health\"
    key: [ip]
    limit: 10/s
    burst: 21
    algorithm: token_bucket

  # Had `delay=2`: what was above waited.
  - name: keys
    match:
      host: [shop.example, www.shop.example]
      path: /api/**
      when: request.path != \"/api/health\"
    key: [host, header.x-api-key]
    limit: 30/min
    burst: 6
    algorithm: token_bucket

  # Was also counted by $limit, which has no counterpart.
  - name: mapped
    match: { host: [shop.example, www.shop.example], path: /api/health }
    key: []
    limit: 5/s
    algorithm: leaky_bucket
    queue: 0
    mode: shadow

  - name: one-3
    match: { host: [shop.example, www.shop.example], path: /login }
    key: [ip]
    limit: 10/s
    algorithm: leaky_bucket
    queue: 4
    mode: shadow

  # Had another condition: location ~* \\.(png|jpg)$
  - name: keys-2
    match: { host: [shop.example, www.shop.example] }
    key: [host, header.x-api-key]
    limit: 30/min
    algorithm: leaky_bucket
    queue: 0
    mode: shadow

  - name: conns-3
    match: { host: \"*.cdn.example\", path: /dl/** }
    key: [ip]
    concurrent: 2
"
    );
    assert_eq!(
        notes,
        [
            "line 4: `conf.d/*.conf` is included, and was not read; import what `nginx -T` prints: it has all files in it",
            "line 7: a request without one of the key's parts was counted by the others, and is not counted here; give the rule `key_missing` if such requests are to be limited",
            "line 8: `$limit` (made on line 5) in a key is not carried over: its rule only counts; say with `match`, `when` or `tiers` what it chose by, and take `mode: shadow` away",
            "line 11: denied requests were answered with 503, and are with 429 here; tell clients that look at the status",
            "line 11: zone `conns` counted requests of several places together, and each rule counts its own; make one rule of them if the sum matters",
            "line 14: the condition `not location ~* \\.(png|jpg)$` is not carried over: its rule only counts; say it with `match` or `when`, and take `mode: shadow` away",
            "line 17: zone `one` counted requests of several places together, and each rule counts its own; make one rule of them if the sum matters",
            "line 18: `delay=2` let 2 through at once and the rest of the burst wait; all of it passes at once here; use `algorithm: leaky_bucket` with `queue` if all are to wait",
            "line 22: the condition `location ~* \\.(png|jpg)$` is not carried over: its rule only counts; say it with `match` or `when`, and take `mode: shadow` away",
            "line 22: zone `keys` counted requests of several places together, and each rule counts its own; make one rule of them if the sum matters",
            "line 23: the limits of a named location are not carried over; put the limit at the locations that lead to it",
            "line 27: `limit_rate` limits bytes, and is not carried over; leave it to nginx: Tollgate counts requests",
            "line 27: location `/dl` also took paths such as `/dlx`, and `/dl/**` does not; name those paths too if there are any"
        ]
    );
    assert_eq!(import(ImportKind::Nginx, "old.conf", NGINX).unwrap().ignored, 7);
}

#[test]
fn places_of_nginx_are_where_they_were() {
    let zone = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_req_status 429;";
    let cases = [
        ("limit_req zone=a;", ""),
        ("server { limit_req zone=a; location /x/ { } }", ""),
        ("server { location / { limit_req zone=a; } }", ""),
        ("server { server_name b; limit_req zone=a; }", "host: b"),
        ("limit_req zone=a; server { server_name b; } server { server_name c; }", ""),
        (
            "server { server_name b; limit_req zone=a; } server { server_name c C.d; limit_req zone=a; } server { server_name e; }",
            "host: [b, c, c.d]",
        ),
        (
            "server { location /x/ { limit_req zone=a; } location = /y { limit_req zone=a; } }",
            "path: [/x/**, /y]",
        ),
        (
            "server { location /x/ { limit_req zone=a; location /x/y/ { limit_req zone=a burst=1; } } }",
            "path: /x/**, when: '!request.path.startsWith(\"/x/y/\")'",
        ),
        (
            "limit_req zone=a; server { location /x/ { limit_req zone=a burst=1; location = /x/y { limit_req zone=a; } } }",
            "when: '!request.path.startsWith(\"/x/\") || request.path == \"/x/y\"'",
        ),
        (
            "server { location /a*b/ { limit_req zone=a; } }",
            "when: request.path.startsWith(\"/a*b/\")",
        ),
        ("server { server_name .b.c; limit_req zone=a; }", "host: [\"*.b.c\", b.c]"),
    ];
    for (text, place) in cases {
        let rules = rules(ImportKind::Nginx, &format!("{zone} {text}"));
        // The rule without a burst, if there are two.
        let rule = rules.split("- name").find(|rule| rule.contains("queue: 0")).unwrap_or_default();
        let found = rule.lines().find_map(|line| line.trim().strip_prefix("match: "));
        let expected = (!place.is_empty()).then(|| format!("{{ {place} }}"));
        assert_eq!(found, expected.as_deref(), "{text}\n{rules}");
    }
}

#[test]
fn keys_of_nginx_become_attributes() {
    let cases = [
        ("$remote_addr", "ip"),
        ("$binary_remote_addr$binary_remote_addr", "ip"),
        ("$host", "host"),
        ("${arg_user}x", "query.user"),
        ("$http_X_Key", "header.x-key"),
        ("$jwt_claim_sub", "claims.sub"),
        ("everybody", ""),
        ("'$request_method $uri'", "method, path"),
    ];
    for (key, expected) in cases {
        let text =
            format!("limit_conn_zone {key} zone=a:1m; limit_conn_status 429; limit_conn a 3;");
        let expected = format!("  - name: a\n    key: [{expected}]\n    concurrent: 3\n");
        assert_eq!(rules(ImportKind::Nginx, &text), expected, "{key}");
    }
}

const ENVOY: &str = "\
domain: shop
descriptors:
  - key: plan
    value: pro
    rate_limit: { unit: minute, requests_per_unit: 600 }
    descriptors:
      - key: user
        rate_limit: { unit: second, requests_per_unit: 20, name: pro-user }
        shadow_mode: true
  - key: plan
    rate_limit: { unit: MINUTE, requests_per_unit: 60 }
  - key: plan
    value: trial*
    rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: plan
    value: staff
  - key: plan
    value: edu*
    share_threshold: true
    rate_limit: { unit: day, requests_per_unit: 9 }
  - key: remote_address
    rate_limit:
      unit: month
      requests_per_unit: 5000
      replaces: [{ name: pro-user }]
  - key: method
    value: POST
    rate_limit: { unit: second, requests_per_unit: 5 }
    colour: red
  - key: method
    value: DELETE
    quota_mode: true
    detailed_metric: true
    rate_limit: { unit: second, requests_per_unit: 0 }
";

const LIMITADOR: &str = "\
- namespace: shop
  max_value: 10
  seconds: 60
  conditions: [\"req.method == 'POST'\", \"descriptors[0]['plan'] != 'staff'\"]
  variables: [user_id]
- namespace: shop
  name: Slow things
  max_value: 5
  seconds: 900
  conditions:
    - descriptors[0].path.startsWith('/slow')
    - descriptors[1].x == 'y'
  variables: [\"descriptors[0].account\", \"size(x)\"]
- namespace: other
  max_value: 1
  seconds: 90
";

const NGINX: &str = "\
user www;
http {
  include /etc/nginx/mime.types;
  include conf.d/*.conf;
  map $http_x_plan $limit { default $binary_remote_addr; gold ''; }  # a key for some
  limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
  limit_req_zone \"$server_name:$http_x_api_key\" zone=keys:1m rate=30r/m;
  limit_req_zone $limit zone=mapped:1m rate=5r/s;
  limit_conn_zone $remote_addr zone=conns:1m;
  upstream app { server 10.0.0.1:80; }
  limit_conn conns 20;
  server {
    server_name shop.example www.shop.example;
    limit_req zone=one;
    location / { proxy_pass http://app; }
    location /api/ {
      limit_req zone=one burst=20 nodelay;
      limit_req zone=keys burst=5 delay=2;
      location = /api/health { limit_req zone=mapped; }
    }
    location = /login { limit_req zone=one burst=4; limit_req_dry_run on; }
    location ~* \\.(png|jpg)$ { limit_req zone=keys; }
    location @fallback { limit_req zone=keys; }
  }
  server {
    server_name *.cdn.example;
    location /dl { limit_conn conns 2; limit_rate 100k; }
    content_by_lua_block { if x then return { 1 } end }
  }
}
";
