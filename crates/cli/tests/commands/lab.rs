//! `tollgate lab`.

use crate::tollgate;

#[test]
fn schedules_of_lending_are_run_and_summed_up() {
    let run = tollgate(&["lab", "lending", "--schedules", "20", "--seed", "7"]).ends(0);
    run.prints(&["20 schedules from seed 7", "no limit was passed"]);
    let json = ["lab", "lending", "--schedules", "20", "--seed", "7", "--output", "json"];
    let found = tollgate(&json).ends(0).json();
    assert_eq!((&found["schedules"], &found["failure"]), (&20.into(), &serde_json::Value::Null));
    assert_eq!(tollgate(&json).json(), found, "the same again");
}

#[test]
fn progress_is_told_beside_the_result() {
    let run = tollgate(&["lab", "lending", "--schedules", "100", "--seed", "7"]).ends(0);
    run.notes(&["10 of 100 schedules", "100 of 100 schedules"]);
}

#[test]
fn a_failure_says_how_to_see_it_again() {
    let run = tollgate(&["lab", "lending", "--careless-store", "--seed", "7"]).ends(1);
    let again = run.out.lines().find_map(|line| line.strip_prefix("again: tollgate ")).unwrap();
    let arguments: Vec<_> = again.split(' ').collect();
    let failed = run.out.lines().find(|line| line.starts_with("failed: ")).unwrap();
    tollgate(&arguments).ends(1).prints(&[failed, "the last events:"]);
}

#[test]
fn numbers_that_are_none_are_refused() {
    for wrong in
        [["--schedules", "0"], ["--schedules", "many"], ["--seed", "x"], ["--threads", "0"]]
    {
        tollgate(&[&["lab", "lending"][..], &wrong].concat()).ends(2).notes(&[wrong[0]]);
    }
}
