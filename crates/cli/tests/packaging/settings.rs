//! What the Debian package brings for `/etc`, and what it is called.

use tollgate_doors::Config;

use crate::packaging;

#[test]
fn the_settings_are_the_defaults_with_rules() {
    let config = Config::parse(&packaging("tollgate.toml")).unwrap();
    let rules = Some("rules.yaml".into());
    assert_eq!(config, Config { rules, ..Config::defaults(1) });
}

#[test]
fn the_last_change_is_about_this_version() {
    let changelog = packaging("debian/changelog");
    let first = format!("tollgate ({}-1) ", env!("CARGO_PKG_VERSION"));
    assert!(changelog.starts_with(&first), "add `{first}...` to packaging/debian/changelog");
}
