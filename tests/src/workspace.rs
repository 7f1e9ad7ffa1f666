//! The packages of the workspace, as cargo sees them.

use std::process::Command;
use std::{io, string};

use serde_json::Value;

use crate::tree::repository;

/// What `cargo metadata` says about the members of this workspace.
#[derive(Debug)]
pub struct Workspace {
    packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo. Dependencies are not resolved, so this needs no network.
    ///
    /// # Errors
    ///
    /// When cargo fails, or says something else than we know how to read.
    pub fn of_this_repository() -> Result<Self, Error> {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(repository())
            .output()?;
        if !output.status.success() {
            return Err(Error::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let root = format!("{}/", repository().to_string_lossy());
        Self::parse(&String::from_utf8(output.stdout)?, &root)
    }

    /// Reads the answer of cargo. `root` is taken off the paths.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, or lacks a field.
    pub fn parse(text: &str, root: &str) -> Result<Self, Error> {
        let value: Value = serde_json::from_str(text)?;
        let packages = array(&value, "packages")?;
        let packages = packages.iter().map(|package| Package::parse(package, root));
        Ok(Self { packages: packages.collect::<Result<_, _>>()? })
    }

    /// All members.
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// The member called `name`.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The ways to build the published members: each without features, then with each feature
    /// alone.
    pub fn feature_builds(&self) -> Vec<(&str, Option<&str>)> {
        let mut builds = Vec::new();
        for package in self.packages.iter().filter(|package| package.is_published) {
            builds.push((package.name.as_str(), None));
            let features = package.features.iter();
            builds.extend(features.map(|feature| (package.name.as_str(), Some(feature.as_str()))));
        }
        builds
    }

    /// Which members `package` depends on, for building, running or testing.
    pub fn members_below<'a>(&self, package: &'a Package) -> Vec<&'a str> {
        let names = package.dependencies.iter().map(String::as_str);
        names.filter(|name| self.package(name).is_some()).collect()
    }
}

/// One member of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The names of the packages it depends on, of every kind.
    pub dependencies: Vec<String>,
    /// Paths of the files its library and its programs start from, relative to the root.
    pub roots: Vec<String>,
    /// Its features, in order; an optional dependency that can be switched on is one.
    pub features: Vec<String>,
    /// Whether it is meant for a registry.
    pub is_published: bool,
}

impl Package {
    fn parse(value: &Value, root: &str) -> Result<Self, Error> {
        let mut roots = Vec::new();
        for target in array(value, "targets")? {
            let kinds = array(target, "kind")?;
            if !kinds.iter().any(|kind| NOT_SHIPPED.iter().any(|other| kind == other)) {
                let path = string(target, "src_path")?;
                roots.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
        let dependencies = array(value, "dependencies")?.iter();
        let features = value.get("features").and_then(Value::as_object);
        // No list of registries means any; an empty one means none.
        let registries = value.get("publish").and_then(Value::as_array);
        Ok(Self {
            name: string(value, "name")?,
            dependencies: dependencies.map(|dep| string(dep, "name")).collect::<Result<_, _>>()?,
            roots,
            features: features.ok_or(Error::Missing("features"))?.keys().cloned().collect(),
            is_published: registries.is_none_or(|registries| !registries.is_empty()),
        })
    }
}

/// Why the workspace could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Cargo could not be started.
    #[error("cargo cannot be run")]
    Io(#[from] io::Error),
    /// Cargo refused, and said why. A manifest is at fault.
    #[error("cargo refused: {0}")]
    Refused(String),
    /// The answer is not text.
    #[error("the answer of cargo is not UTF-8")]
    Text(#[from] string::FromUtf8Error),
    /// The answer is not JSON.
    #[error("the answer of cargo is not JSON")]
    Json(#[from] serde_json::Error),
    /// The answer lacks something we rely on.
    #[error("the answer of cargo has no `{0}`")]
    Missing(&'static str),
}

fn array<'a>(value: &'a Value, field: &'static str) -> Result<&'a Vec<Value>, Error> {
    value.get(field).and_then(Value::as_array).ok_or(Error::Missing(field))
}

fn string(value: &Value, field: &'static str) -> Result<String, Error> {
    let text = value.get(field).and_then(Value::as_str).ok_or(Error::Missing(field))?;
    Ok(text.to_owned())
}

/// Kinds of targets that are no part of what a package is used for.
const NOT_SHIPPED: [&str; 4] = ["bench", "custom-build", "example", "test"];

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"packages": [
        {"name": "a", "publish": null, "dependencies": [], "features": {"x": [], "y": []}, "targets": [
            {"kind": ["lib"], "src_path": "/r/a/src/lib.rs"},
            {"kind": ["test"], "src_path": "/r/a/tests/b.rs"}]},
        {"name": "b", "publish": [], "features": {"z": []}, "dependencies": [
            {"name": "a"}, {"name": "serde"}], "targets": [
            {"kind": ["bin"], "src_path": "/r/b/src/main.rs"}]}]}"#;

    #[test]
    fn reads_members_their_dependencies_and_their_roots() {
        let workspace = Workspace::parse(SAMPLE, "/r/").expect("the sample is well-formed");
        let a = workspace.package("a").expect("a is there");
        let b = workspace.package("b").expect("b is there");
        assert_eq!(a.roots, ["a/src/lib.rs"]);
        assert_eq!(b.roots, ["b/src/main.rs"]);
        assert_eq!(b.dependencies, ["a", "serde"]);
        assert_eq!(workspace.members_below(b), ["a"]);
        assert!(workspace.members_below(a).is_empty());
    }

    #[test]
    fn published_members_are_built_with_each_feature_alone() {
        let workspace = Workspace::parse(SAMPLE, "/r/").expect("the sample is well-formed");
        let expected = [("a", None), ("a", Some("x")), ("a", Some("y"))];
        assert_eq!(workspace.feature_builds(), expected);
    }

    #[test]
    fn says_what_is_missing() {
        let error =
            Workspace::parse(r#"{"packages": [{"name": "a"}]}"#, "").expect_err("no targets");
        assert_eq!(error.to_string(), "the answer of cargo has no `targets`");
        assert!(matches!(Workspace::parse("{", ""), Err(Error::Json(_))));
    }

    #[test]
    fn reads_this_workspace() {
        let workspace = Workspace::of_this_repository().expect("cargo answers");
        let here = workspace.package("tollgate-tests").expect("this package is a member");
        assert_eq!(here.roots, ["tests/src/lib.rs", "tests/src/main.rs"]);
    }
}
