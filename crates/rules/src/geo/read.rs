//! The databases that a rule file names.

use std::path::PathBuf;

use super::Geo;
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::files::Files;
use crate::read::{Fields, Reader};

impl Geo {
    pub(crate) const FIELDS: [&str; 2] = ["asn", "country"];

    /// Opens them. What cannot be opened is reported, and there is none then.
    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, files: &dyn Files) -> Option<Self> {
        let fields = reader.fields(node, "`geo`", &Self::FIELDS)?;
        if !Self::FIELDS.iter().any(|name| fields.has(name)) {
            let remedy = "name a database: `geo: { country: GeoLite2-Country.mmdb }`";
            reader.missing(&fields, "`geo`", "country", remedy);
            return None;
        }
        let asn = open(reader, &fields, "asn", files, |path| Self::open(Some(&path), None));
        let country = open(reader, &fields, "country", files, |path| Self::open(None, Some(&path)));
        Some(Self {
            asn: asn?.and_then(|geo| geo.asn),
            country: country?.and_then(|geo| geo.country),
        })
    }
}

/// The database that a field names, if it names one; `None` if it is no good.
#[expect(clippy::option_option, reason = "no database is not the same as one that is no good")]
fn open(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: &str,
    files: &dyn Files,
    open: impl FnOnce(PathBuf) -> Result<Geo, super::GeoError>,
) -> Option<Option<Geo>> {
    let Some(node) = fields.get(field) else { return Some(None) };
    let name = reader.text(node, "a database")?;
    let opened = match files.path_of(name) {
        Some(path) => open(path).map_err(|error| error.to_string()),
        None => Err(format!("`{name}` cannot be read: these rules did not come from a file")),
    };
    match opened {
        Ok(geo) => Some(Some(geo)),
        Err(message) => {
            let remedy =
                "name a MaxMind database beside the rule file, such as `GeoLite2-ASN.mmdb`";
            let span = node.span.clone();
            reader.add(Diagnostic::error("unreadable-file", span, message, "this file", remedy));
            None
        }
    }
}
