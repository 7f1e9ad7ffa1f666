//! The style of this repository, as tests. Each names a rule and prints every place that breaks
//! it as `path:line`.
//!
//! The limits are a ratchet: they may be tightened, and an exception is added to a list at the
//! foot of this file only with its reason.

use std::path::Path;

use tollgate_tests::tree::{File, Tree};
use tollgate_tests::workspace::Workspace;
use tollgate_tests::{Violation, markdown, safety, style};

#[test]
fn no_file_is_too_long() {
    let tree = tree();
    let files = tree.with_extension("rs");
    none(files.flat_map(|file| style::long_file(file, FILE_LINES, FILE_LINES_WITHOUT_TESTS)));
}

#[test]
fn no_function_is_longer_than_seventy_lines() {
    let tree = tree();
    let files = tree.with_extension("rs");
    none(files.flat_map(|file| style::long_functions(file, FUNCTION_LINES)));
}

#[test]
fn nothing_is_left_for_later_and_no_test_is_switched_off() {
    none(tree().files().iter().flat_map(style::leftovers));
}

#[test]
fn no_test_sleeps() {
    let tree = tree();
    let waits = |file: &&File| WAITS_FOR_PROCESSES.contains(&&*file.path);
    let all = tree.with_extension("rs").filter(|file| !waits(file));
    none(all.flat_map(style::sleeps_in_tests));
}

#[test]
fn every_file_has_a_name_that_says_something() {
    let tree = tree();
    let ours = tree.files().iter().filter(|file| !file.path.starts_with(NAMED_BY_ENVOY));
    none(ours.flat_map(style::meaningless_name));
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let tree = tree();
    none(tree.files().iter().flat_map(|file| style::forbidden_words(file, &FORBIDDEN_WORDS)));
}

#[test]
fn links_between_documents_resolve() {
    let tree = tree();
    none(tree.with_extension("md").flat_map(|file| markdown::broken_links(file, &tree)));
}

#[test]
fn links_to_headings_resolve() {
    let tree = tree();
    none(tree.with_extension("md").flat_map(|file| markdown::broken_headings(file, &tree)));
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let tree = tree();
    let pages = || tree.with_extension("md").filter(|file| file.path.starts_with("docs/"));
    let summary = pages().find(|file| file.path == SUMMARY);
    let linked = summary.map(markdown::linked).unwrap_or_default();
    let is_in_it = |file: &&File| linked.iter().any(|path| path == Path::new(&file.path));
    let outside = pages().filter(|file| file.path != SUMMARY && !is_in_it(file));
    none(outside.map(|file| Violation::new(&file.path, 1, format!("is not in {SUMMARY}"))));
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    none(tree().with_extension("rs").flat_map(safety::unexplained));
}

#[test]
fn unsafe_code_stays_in_its_files() {
    let tree = tree();
    let outside = tree.with_extension("rs").filter(|file| !MAY_BE_UNSAFE.contains(&&*file.path));
    none(outside.flat_map(|file| {
        let lines = safety::unsafe_lines(file).into_iter();
        lines.map(|line| Violation::new(&file.path, line, "unsafe code in a file without leave"))
    }));
}

#[test]
fn every_file_with_leave_to_be_unsafe_needs_it() {
    let tree = tree();
    let needs_it = |path: &str| {
        let file = tree.files().iter().find(|file| file.path == path);
        file.is_some_and(|file| !safety::unsafe_lines(file).is_empty())
    };
    let idle = MAY_BE_UNSAFE.into_iter().filter(|path| !needs_it(path));
    none(idle.map(|path| Violation::new(path, 1, "take it off the list: it is not unsafe")));
}

#[test]
fn every_crate_refuses_unsafe_code() {
    let tree = tree();
    let mut found = Vec::new();
    for package in workspace().packages() {
        let level = if MAY_DENY.contains(&&*package.name) { "deny" } else { "forbid" };
        for root in &package.roots {
            let file = tree.files().iter().find(|file| file.path == *root);
            if !file.is_some_and(|file: &File| safety::has_level(file, level)) {
                found.push(Violation::new(root, 1, format!("lacks `#![{level}(unsafe_code)]`")));
            }
        }
    }
    none(found);
}

#[test]
fn dependencies_point_towards_core() {
    let workspace = workspace();
    let mut found = Vec::new();
    for (name, allowed) in MAY_DEPEND_ON {
        let package = workspace.package(name).expect("the lists at the foot name packages");
        for below in workspace.members_below(package) {
            if !allowed.contains(&below) {
                found.push(format!("{name} depends on {below}"));
            }
        }
    }
    for package in workspace.packages() {
        for below in workspace.members_below(package) {
            if NOBODY_BUILDS_ON.contains(&below) {
                found.push(format!("{} depends on {below}", package.name));
            }
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn core_knows_no_runtime() {
    let workspace = workspace();
    let core = workspace.package("tollgate-core").expect("core is a member");
    let runtimes = core.dependencies.iter().filter(|name| RUNTIMES.contains(&name.as_str()));
    assert_eq!(runtimes.collect::<Vec<_>>(), [""; 0]);
}

#[expect(clippy::expect_used, reason = "without the tree there is nothing to test")]
fn tree() -> Tree {
    Tree::of_this_repository().expect("the repository is readable")
}

#[expect(clippy::expect_used, reason = "without the workspace there is nothing to test")]
fn workspace() -> Workspace {
    Workspace::of_this_repository().expect("cargo describes the workspace")
}

/// Fails with one line for each violation.
#[track_caller]
fn none(violations: impl IntoIterator<Item = Violation>) {
    let lines: Vec<_> = violations.into_iter().map(|violation| violation.to_string()).collect();
    assert!(lines.is_empty(), "{} found:\n{}\n", lines.len(), lines.join("\n"));
}

/// The table of contents of the documents.
const SUMMARY: &str = "docs/SUMMARY.md";

const FILE_LINES: usize = 800;
const FILE_LINES_WITHOUT_TESTS: usize = 500;
const FUNCTION_LINES: usize = 70;

/// Files that may hold unsafe code: the memory of the table, the hint to fetch it early, the
/// comparison of its tags, and the bare loop every measurement is compared with.
const MAY_BE_UNSAFE: [&str; 4] = [
    "bench/src/subject/floor.rs",
    "crates/local/src/memory.rs",
    "crates/local/src/prefetch.rs",
    "crates/local/src/table/tags.rs",
];

/// Packages with such files. They deny unsafe code where the others forbid it, so that each file
/// asks for its exception in view.
const MAY_DENY: [&str; 2] = ["tollgate-bench", "tollgate-local"];

/// The lower crates, and the members each may know.
const MAY_DEPEND_ON: [(&str, &[&str]); 9] = [
    ("tollgate-core", &[]),
    ("tollgate-local", &["tollgate-core"]),
    ("tollgate-rules", &["tollgate-core"]),
    ("tollgate-store", &["tollgate-core", "tollgate-local"]),
    ("tollgate-sim", &["tollgate-core"]),
    ("tollgate", &["tollgate-core", "tollgate-local", "tollgate-rules", "tollgate-store"]),
    ("tollgate-proto", &[]),
    ("tollgate-client", &["tollgate-proto"]),
    (
        "tollgate-doors",
        &[
            "tollgate",
            "tollgate-core",
            "tollgate-local",
            "tollgate-proto",
            "tollgate-rules",
            "tollgate-store",
        ],
    ),
];

/// Files that stand where Envoy has them: others import them from there.
const NAMED_BY_ENVOY: &str = "crates/proto/proto/envoy/";

/// Where tests wait for a condition of another process, which tells nobody when it holds.
const WAITS_FOR_PROCESSES: [&str; 2] =
    ["crates/cli/tests/serve/support/process.rs", "crates/store/tests/support/process.rs"];

/// The ends of the graph: programs and tests.
const NOBODY_BUILDS_ON: [&str; 3] = ["tollgate-bench", "tollgate-cli", "tollgate-tests"];

const RUNTIMES: [&str; 4] = ["async-std", "futures", "smol", "tokio"];

/// Put together here, so that this file does not carry them.
const FORBIDDEN_WORDS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];
