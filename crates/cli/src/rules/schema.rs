//! `tollgate rules schema`: what editors know of rule files.

use serde_json::Value;

use crate::error::{Ending, Error};
use crate::flags::{Output, RulesSchema};
use crate::print;

pub(super) fn run(flags: &RulesSchema) -> Result<Ending, Error> {
    let schema = tollgate_rules::schema();
    match flags.output {
        Output::Text => print::text(&schema)?,
        Output::Json => {
            let tree: Value =
                serde_json::from_str(&schema).map_err(|error| Error::Print(error.into()))?;
            print::json(&tree)?;
        }
    }
    Ok(Ending::Good)
}
