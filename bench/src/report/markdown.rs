//! The report as a Markdown page.

use super::table::{panel_cells, promise_cells, verdict};
use super::{Provenance, Report};

/// The page, with where and how the figures were found on top.
pub(crate) fn render(report: &Report, provenance: &Provenance) -> String {
    let mut page = format!("{}\n", provenance.markdown());
    let (header, rows) = promise_cells(report);
    if !rows.is_empty() {
        page += &table(&header, &rows);
        for row in report.promises() {
            if let Some(note) = &row.note {
                page += &format!("\n{}: {note}\n", row.name);
            }
        }
        page += &format!("\n{}\n", verdict(report));
    }
    for panel in report.growth.iter().flat_map(|growth| &growth.panels) {
        let (header, rows) = panel_cells(panel);
        page += &format!("\n{}, {}\n\n{}", panel.quantity, panel.unit, table(&header, &rows));
    }
    page
}

fn table<H: AsRef<str>, R: AsRef<[String]>>(header: &[H], rows: &[R]) -> String {
    let names: Vec<&str> = header.iter().map(AsRef::as_ref).collect();
    let rule = format!("|---|{}", "---:|".repeat(names.len() - 1));
    let mut text = format!("| {} |\n{rule}\n", names.join(" | "));
    for row in rows {
        text += &format!("| {} |\n", row.as_ref().join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Reach, Row, Unit};

    #[test]
    fn a_page_names_its_origin_and_has_a_line_per_row() {
        let row = Row::against("u64 keys", Unit::NanosPerDecision, 100.0, ("governor", 318.0))
            .promising(Reach::Times(2.0));
        let report = Report { rows: vec![row], growth: None };
        let page = render(&report, &Provenance::example());
        assert!(page.contains("rustc 1.95.0"), "{page}");
        assert!(
            page.contains("| u64 keys | 100 ns | 318 ns (governor) | 3.18x | >= 2.0x | ok |"),
            "{page}"
        );
    }
}
