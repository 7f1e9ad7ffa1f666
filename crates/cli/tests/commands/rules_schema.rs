use crate::tollgate;

#[test]
fn editors_get_a_json_schema() {
    let run = tollgate(&["rules", "schema"]).ends(0);
    let people: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert!(run.out.lines().count() > 100, "people can read it");
    let programs = tollgate(&["rules", "schema", "--output", "json"]).ends(0).json();
    assert_eq!(people, programs);
    assert_eq!(programs["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(programs["properties"]["rules"].is_object());
    tollgate(&["rules", "schema", "rules.yaml"]).ends(2);
}
