//! The report as tables for a terminal.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};

use super::{Growth, Panel, Provenance, Report, Row, figure};
use crate::error::BenchError;

/// Prints the promises, then how figures grow.
pub(crate) fn print(
    report: &Report,
    provenance: &Provenance,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    writeln!(out, "{provenance}\n")?;
    if report.promises().next().is_some() {
        writeln!(out, "{}", promises(report))?;
        for row in report.promises() {
            if let Some(note) = &row.note {
                writeln!(out, "{}: {note}", row.name)?;
            }
        }
        writeln!(out, "{}\n", verdict(report))?;
    }
    for panel in report.growth.iter().flat_map(|growth: &Growth| &growth.panels) {
        writeln!(out, "{}, {}\n{}\n", panel.quantity, panel.unit, panel_table(panel))?;
    }
    Ok(())
}

/// The header and the cells of the table of promises.
pub(super) fn promise_cells(report: &Report) -> ([&'static str; 6], Vec<[String; 6]>) {
    let header = ["row", "ours", "peer", "ratio", "reach", ""];
    (header, report.promises().map(cells).collect())
}

/// The header and the cells of one growth table.
pub(super) fn panel_cells(panel: &Panel) -> (Vec<String>, Vec<Vec<String>>) {
    let header = std::iter::once(panel.across.name().to_owned())
        .chain(panel.lines.iter().map(|line| line.subject.to_owned()))
        .collect();
    let rows = panel.keys.iter().enumerate().filter_map(|(index, keys)| {
        let values = panel.lines.iter().map(|line| figure(line.values[index]));
        Some(std::iter::once(panel.across.label(*keys)?).chain(values).collect())
    });
    (header, rows.collect())
}

/// One sentence about how many promises hold.
pub(super) fn verdict(report: &Report) -> String {
    let total = report.promises().count();
    format!("Within reach: {} of {total} rows.", total - report.missed())
}

fn cells(row: &Row) -> [String; 6] {
    let unit = row.unit;
    let mut peers: Vec<String> = Vec::new();
    if let (Some(peer), Some(name)) = (row.peer, row.peer_name) {
        peers.push(format!("{} {unit} ({name})", figure(peer)));
    }
    peers.extend(row.others.iter().map(|(name, value)| format!("{} ({name})", figure(*value))));
    [
        row.name.clone(),
        format!("{} {unit}", figure(row.ours)),
        peers.join(", "),
        row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}x")),
        row.reach.map_or_else(String::new, |reach| reach.to_string()),
        if row.ok { "ok" } else { "MISS" }.to_owned(),
    ]
}

fn promises(report: &Report) -> Table {
    let (header, rows) = promise_cells(report);
    let mut table = table(header.map(str::to_owned).to_vec());
    table.add_rows(rows);
    table
}

fn panel_table(panel: &Panel) -> Table {
    let (header, rows) = panel_cells(panel);
    let mut table = table(header);
    table.add_rows(rows);
    table
}

fn table(header: Vec<String>) -> Table {
    let columns = header.len();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(header);
    for index in 1..columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
