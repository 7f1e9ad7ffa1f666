//! Figures for people, and for programs.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use tollgate::Limit;

use crate::bench::measure::Row;

pub(crate) fn table(limit: &Limit, rows: &[Row], quick: bool) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "keys",
        "threads",
        "asked",
        "ns per decision",
        "decisions/s",
        "bytes per key",
    ]);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in rows {
        table.add_row([
            grouped(row.keys as f64),
            row.threads.to_string(),
            row.mode.to_string(),
            format!("{:.1}", row.ns_per_decision),
            grouped(row.decisions_per_s),
            format!("{:.1}", row.bytes_per_key),
        ]);
    }
    let note = if quick { "\nA short run: figures are rough.\n" } else { "" };
    format!(
        "{limit} for each key, random keys, the clock read once per call\n\n{table}\n{note}\n\
         Nanoseconds are one thread's; decisions/s are those of all threads together.\n"
    )
}

pub(crate) fn json(rows: &[Row]) -> String {
    rows.iter().fold(String::new(), |mut text, row| {
        // Numbers and names always become JSON, and strings always grow.
        let line = serde_json::to_string(row).unwrap_or_default();
        let _ = writeln!(text, "{line}");
        text
    })
}

/// A number with its thousands apart.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::Mode;

    fn row() -> Row {
        Row {
            keys: 1_000_000,
            threads: 2,
            mode: Mode::Batch,
            ns_per_decision: 30.04,
            decisions_per_s: 66_577_896.0,
            bytes_per_key: 23.1,
            allowed: 1.0,
        }
    }

    #[test]
    fn people_read_a_table() {
        let limit = Limit::token_bucket("5/s").unwrap();
        let text = table(&limit, &[row()], true);
        for part in
            ["token bucket of 5/s", "1 000 000", "batch of 32", "30.0", "66 577 896", "rough"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn programs_read_one_object_a_line() {
        let text = json(&[row(), row()]);
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["keys"], 1_000_000);
            assert_eq!(value["mode"], "batch");
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(7.0), "7");
        assert_eq!(grouped(1234.0), "1 234");
        assert_eq!(grouped(1_234_567.4), "1 234 567");
    }
}
