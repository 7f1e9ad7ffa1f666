use crate::{Folder, tollgate, tollgate_reading};

const NGINX: &str = "\
worker_processes 4;
http {
  limit_req_status 429;
  limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
  server {
    server_name shop.example;
    location /api/ { limit_req zone=one burst=20 nodelay; }
    location ~ \\.php$ { limit_req zone=one; }
  }
}
";
const ENVOY: &str = "domain: shop
descriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 9 } }]
";
const LIMITADOR: &str = "\
- { namespace: shop, name: slow, max_value: 5, seconds: 60, variables: [user] }
- { namespace: other, name: closed, max_value: 0, seconds: 60 }
";

#[test]
fn a_rule_file_comes_out_and_notes_stand_beside_it() {
    let run = tollgate_reading(NGINX, &["rules", "import", "nginx", "-"]).ends(0).prints(&[
        "# Imported from standard input.\nversion: 1\nnamespace: nginx\n",
        "  # Had another condition: location ~ \\.php$\n",
        "mode: shadow",
    ]);
    let run = run.notes(&[
        "standard input: 2 things to look at\n\n",
        "  line 8  the condition `location ~ \\.php$` is not carried over: its rule only counts\n",
        "          help: say it with `match` or `when`, and take `mode: shadow` away\n",
        "  1 other directive has nothing to do with limits.\n",
    ]);
    tollgate_reading(&run.out, &["rules", "check", "-"]).ends(0).prints(&["2 rules"]);
}

#[test]
fn every_kind_is_imported() {
    let run = tollgate_reading(ENVOY, &["rules", "import", "envoy", "-", "--strict"]).ends(0);
    assert_eq!(run.notes, "", "nothing is to be said");
    assert!(run.out.contains("limit: 9/min"), "{}", run.out);
    let of = |namespace: &str| {
        let arguments = ["rules", "import", "limitador", "-", "--namespace", namespace];
        tollgate_reading(LIMITADOR, &arguments)
    };
    of("shop").ends(0).prints(&["name: slow", "limit: 5/min"]);
    of("other").ends(0).prints(&["# Left out: `closed`", "rules: []"]).notes(&["line 2"]);
}

#[test]
fn strict_imports_fail_if_something_is_lost() {
    let arguments = ["rules", "import", "nginx", "-", "--strict"];
    tollgate_reading(NGINX, &arguments).ends(1).prints(&["limit: 10/s"]);
}

#[test]
fn programs_read_rules_and_notes() {
    let arguments = ["rules", "import", "nginx", "-", "--output", "json"];
    let json = tollgate_reading(NGINX, &arguments).ends(0).json();
    assert!(json["yaml"].as_str().unwrap().contains("name: one"));
    assert_eq!((&json["ignored"], &json["out"]), (&1.into(), &serde_json::Value::Null));
    let notes = json["notes"].as_array().unwrap();
    assert_eq!((notes.len(), &notes[0]["line"]), (2, &8.into()));
    assert!(notes[0]["remedy"].is_string());
}

#[test]
fn files_are_not_overwritten_by_accident() {
    let folder = Folder::new();
    let out = folder.path("rules.yaml").to_str().unwrap().to_owned();
    let arguments = ["rules", "import", "envoy", "-", "--out", &out];
    tollgate_reading(ENVOY, &arguments).ends(0).prints(&["wrote ", "rules.yaml"]);
    assert!(folder.read("rules.yaml").contains("limit: 9/min"));
    folder.write("rules.yaml", "# mine\n");
    tollgate_reading(ENVOY, &arguments).ends(2).notes(&["is there already", "`--force`"]);
    assert_eq!(folder.read("rules.yaml"), "# mine\n");
    let json = tollgate_reading(ENVOY, &[&arguments[..], &["--output", "json"]].concat());
    assert_eq!(json.ends(2).json()["findings"][0]["code"], "file-exists");
    tollgate_reading(ENVOY, &[&arguments[..], &["--force"]].concat()).ends(0);
    assert!(folder.read("rules.yaml").contains("limit: 9/min"));
    assert_eq!(folder.names(), ["rules.yaml"]);
    let nowhere = folder.path("no/such/folder.yaml");
    let arguments = ["rules", "import", "envoy", "-", "--out", nowhere.to_str().unwrap()];
    tollgate_reading(ENVOY, &arguments).ends(2).notes(&["cannot be written"]);
}

#[test]
fn what_cannot_be_imported_is_refused() {
    let import = |kind: &str, text: &str| tollgate_reading(text, &["rules", "import", kind, "-"]);
    import("nginx", "http {").ends(1).notes(&["standard input:1:1", "this block is not closed"]);
    import("nginx", "user www;").ends(1).notes(&["there are no limits", "help: "]);
    import("envoy", LIMITADOR).ends(1).notes(&["standard input:1:"]);
    import("limitador", LIMITADOR).ends(2).notes(&["other, shop", "--namespace"]);
    import("apache", "").ends(2).notes(&["possible values: envoy, limitador, nginx"]);
    let json = |kind: &str, text: &str| {
        let run = tollgate_reading(text, &["rules", "import", kind, "-", "--output", "json"]);
        run.json()["findings"][0]["code"].clone()
    };
    assert_eq!(json("nginx", "http {"), "syntax");
    assert_eq!(json("nginx", "user www;"), "no-limits");
    assert_eq!(json("limitador", LIMITADOR), "unknown-namespace");
    let arguments = ["rules", "import", "envoy", "-", "--namespace", "a"];
    tollgate_reading(ENVOY, &arguments).ends(2).notes(&["only files of Limitador"]);
    tollgate(&["rules", "import", "nginx", "/no/such/file"]).ends(2).notes(&["cannot be read"]);
}
