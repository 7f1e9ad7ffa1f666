use crate::{Folder, SMALL, WRONG, shop, tollgate, tollgate_reading};

const FAILING: &str = "rules: [{ name: per-user, key: [user], limit: 5/s }]
tests:
  - name: five pass
    given: { request: GET / user=a, times: 6 }
    expect: { allowed: 5 }
  - name: and later again
    steps:
      - given: { request: GET / user=a, times: 5 }
        expect: { denied: 0 }
      - after: 100ms
        given: { request: GET / user=a }
        expect: { allowed: 1 }
";

#[test]
fn the_tests_of_the_shop_pass() {
    tollgate(&["rules", "test", &shop()])
        .ends(0)
        .prints(&["ok      five exports at once", "ok: 13 tests, 13 passed, 0 failed"]);
}

#[test]
fn a_failed_test_says_what_came_instead() {
    tollgate_reading(FAILING, &["rules", "test", "-"]).ends(1).prints(&[
        "  ok      five pass\n  FAILED  and later again\n",
        "step 2: expected 1 allowed, got 0; first denial at request 1 after 0 s by `per-user`, \
         retry after 100 ms",
        "FAILED: 2 tests, 1 passed, 1 failed",
    ]);
    let json = tollgate_reading(FAILING, &["rules", "test", "-", "--output", "json"]).ends(1);
    let json = json.json();
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &1.into()));
    let tests = &json["files"][0]["tests"];
    assert_eq!((&tests[0]["name"], &tests[0]["passed"]), (&"five pass".into(), &true.into()));
    let failure = &tests[1]["failures"][0];
    assert_eq!((&failure["step"], &failure["about"]), (&2.into(), &"allowed".into()));
    assert_eq!(failure["expected"], "1 allowed");
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let folder = Folder::new();
    let (good, wrong) = (shop(), folder.write("wrong.yaml", WRONG));
    let missing = folder.path("missing.yaml").to_str().unwrap().to_owned();
    tollgate(&["rules", "test", &wrong, &good])
        .ends(1)
        .notes(&["wrong.yaml:2:22"])
        .prints(&["cannot be used", "13 passed, 0 failed; 1 file cannot be used"]);
    tollgate(&["rules", "test", &missing, &wrong, &good]).ends(2).prints(&["13 passed"]);
    let json = tollgate(&["rules", "test", &missing, &good, "--output", "json"]).ends(2).json();
    assert_eq!(json["files"][0]["findings"][0]["code"], "unreadable-file");
    assert_eq!(json["passed"], 13);
}

#[test]
fn tests_may_stand_in_a_file_of_their_own() {
    let folder = Folder::new();
    let rules = folder.write("rules.yaml", &format!("{SMALL}tests: tests.yaml\n"));
    tollgate(&["rules", "test", &rules]).ends(1).notes(&["`tests.yaml` cannot be read"]);
    let tests =
        "tests:\n  - { name: a, given: { request: GET / user=a }, expect: { denied: 0 } }\n";
    folder.write("tests.yaml", tests);
    tollgate(&["rules", "test", &rules]).ends(0).prints(&["1 test, 1 passed"]);
    folder.write("tests.yaml", &tests.replace("denied", "denid"));
    tollgate(&["rules", "test", &rules]).ends(1).notes(&["tests.yaml:2:60", "did you mean"]);
}

#[test]
fn a_file_without_tests_passes_and_says_so() {
    tollgate_reading(SMALL, &["rules", "test", "-"]).ends(0).prints(&["no tests", "ok: 0 tests"]);
}
