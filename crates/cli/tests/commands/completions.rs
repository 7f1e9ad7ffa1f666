use crate::tollgate;

#[test]
fn shells_learn_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        tollgate(&["completions", shell]).ends(0).prints(&[
            "explain",
            "completions",
            "strict",
            "diff",
            "schema",
            "import",
            "namespace",
            "force",
        ]);
    }
    tollgate(&["completions", "tcsh"]).ends(2).notes(&["possible values"]);
}
