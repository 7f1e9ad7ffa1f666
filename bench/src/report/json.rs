//! One JSON object per row and line.

use std::io::Write;

use super::Report;
use crate::error::BenchError;

/// Prints the rows.
pub(crate) fn print(report: &Report, out: &mut impl Write) -> Result<(), BenchError> {
    for row in &report.rows {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Reach, Row, Unit};

    fn printed(rows: Vec<Row>) -> Vec<serde_json::Value> {
        let mut out = Vec::new();
        print(&Report { rows, growth: None }, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    #[test]
    fn a_row_is_one_object_with_the_fields_readers_expect() {
        let row = Row::against("u64", Unit::NanosPerDecision, 100.0, ("governor", 318.0))
            .promising(Reach::Times(2.0));
        let expected = serde_json::json!({
            "name": "u64", "unit": "ns", "ours": 100.0, "peer": 318.0, "peer_name": "governor",
            "ratio": 3.18, "reach": ">= 2.0x", "ok": true,
        });
        assert_eq!(printed(vec![row]), [expected]);
    }

    #[test]
    fn what_a_row_does_not_have_is_null() {
        let row = Row::alone("max", Unit::Admitted, 5.0);
        let printed = printed(vec![row]);
        for field in ["peer", "ratio", "reach"] {
            assert_eq!(printed[0].get(field), Some(&serde_json::Value::Null));
        }
    }
}
