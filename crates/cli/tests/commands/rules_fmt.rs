use crate::{Folder, shop, tollgate, tollgate_reading};

const UNTIDY: &str = "rules:\n- limit: 5/s # slow\n  name: \"a\"\n  key: []\nversion: 1\n";
const TIDY: &str = "version: 1\nrules:\n  - name: a\n    key: []\n    limit: 5/s  # slow\n";

#[test]
fn a_file_is_replaced_and_then_left_alone() {
    let folder = Folder::new();
    let file = folder.write("rules.yaml", UNTIDY);
    tollgate(&["rules", "fmt", &file]).ends(0).prints(&["formatted "]);
    assert_eq!(folder.read("rules.yaml"), TIDY);
    assert_eq!(folder.names(), ["rules.yaml"], "nothing else is left there");
    assert_eq!(tollgate(&["rules", "fmt", &file]).ends(0).out, "");
}

#[test]
fn a_check_writes_nothing() {
    let folder = Folder::new();
    let file = folder.write("rules.yaml", UNTIDY);
    tollgate(&["rules", "fmt", "--check", &file]).ends(1).prints(&["would change "]);
    assert_eq!(folder.read("rules.yaml"), UNTIDY);
    tollgate(&["rules", "fmt", "--check", &shop()]).ends(0);
    let json = tollgate(&["rules", "fmt", "--check", &file, "--output", "json"]).ends(1).json();
    assert_eq!(json["files"][0]["changed"], true);
    assert_eq!(json["files"][0]["file"], file);
}

#[test]
fn text_can_go_to_standard_output() {
    let folder = Folder::new();
    let file = folder.write("rules.yaml", UNTIDY);
    assert_eq!(tollgate(&["rules", "fmt", "--stdout", &file]).ends(0).out, TIDY);
    assert_eq!(folder.read("rules.yaml"), UNTIDY);
    assert_eq!(tollgate_reading(UNTIDY, &["rules", "fmt", "-"]).ends(0).out, TIDY);
    let json = tollgate_reading(UNTIDY, &["rules", "fmt", "-", "--output", "json"]).json();
    assert_eq!(json["files"][0]["text"], TIDY);
}

#[test]
fn a_file_that_cannot_be_read_stays_as_it_is() {
    let folder = Folder::new();
    let (bad, good) = (folder.write("bad.yaml", "rules: ["), folder.write("good.yaml", UNTIDY));
    tollgate(&["rules", "fmt", &bad, &good]).ends(1).notes(&["bad.yaml:1:"]);
    assert_eq!(
        (folder.read("bad.yaml"), folder.read("good.yaml")),
        ("rules: [".into(), TIDY.into())
    );
    let toml = folder.write("rules.toml", "rules = []\n");
    let json = tollgate(&["rules", "fmt", &toml, "--output", "json"]).ends(1).json();
    assert_eq!(json["files"][0]["findings"][0]["code"], "toml-not-formatted");
    let missing = folder.path("missing.yaml");
    tollgate(&["rules", "fmt", missing.to_str().unwrap()]).ends(2);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = Folder::new();
    let file = folder.write("real.yaml", UNTIDY);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, folder.path("link.yaml")).unwrap();
    tollgate(&["rules", "fmt", folder.path("link.yaml").to_str().unwrap()]).ends(0);
    assert_eq!(folder.read("real.yaml"), TIDY);
    assert!(folder.path("link.yaml").is_symlink());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}
