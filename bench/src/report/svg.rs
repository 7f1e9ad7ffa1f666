//! The growth picture, drawn by hand: one panel per quantity, key counts on a logarithmic axis or
//! seconds, every line labelled at its end. Colours are middle tones without a background, so that the
//! picture reads on light and on dark pages.

use std::fmt::Write;

use super::scale::{AXIS_WIDTH, PLOT_HEIGHT, PLOT_WIDTH, Range, Scale};
use super::{Across, Growth, Line, Panel, Provenance, figure};

/// The whole picture.
pub(crate) fn render(growth: &Growth, provenance: &Provenance) -> String {
    let columns = growth.panels.len().clamp(1, COLUMNS);
    let rows = growth.panels.len().div_ceil(columns).max(1);
    let width = MARGIN + PANEL_WIDTH * columns as f64;
    let height = TOP + PANEL_HEIGHT * rows as f64 + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{TEXT}\">\n"
    );
    let title = escape(&growth.title);
    let _ = writeln!(svg, "<title>{title}</title>");
    svg += &text(MARGIN, 26.0, "start", "font-size=\"17\" font-weight=\"600\"", &growth.title);
    svg += &text(MARGIN, 46.0, "start", "", &growth.about);
    let subjects = subjects(growth);
    let range = Range::of_differences(&growth.panels);
    for (index, panel) in growth.panels.iter().enumerate() {
        let left = MARGIN + PANEL_WIDTH * (index % columns) as f64;
        let top = TOP + PANEL_HEIGHT * (index / columns) as f64;
        let range = range.unwrap_or_else(|| Range::of(panel));
        svg += &draw_panel(panel, &subjects, &Scale::of(panel, range, (left, top)));
    }
    svg += &text(MARGIN, height - 12.0, "start", "font-size=\"11\"", &provenance.caption());
    svg += "</svg>\n";
    svg
}

/// All subjects of a picture. A subject's place in this list gives its colour in every panel.
fn subjects(growth: &Growth) -> Vec<&'static str> {
    let mut subjects = Vec::new();
    for line in growth.panels.iter().flat_map(|panel| &panel.lines) {
        if !subjects.contains(&line.subject) {
            subjects.push(line.subject);
        }
    }
    subjects
}

fn draw_panel(panel: &Panel, subjects: &[&str], scale: &Scale) -> String {
    let mut svg = String::from("<g>\n");
    let heading = match scale.is_difference {
        true => panel.quantity.to_owned(),
        false => format!("{}, {}", panel.quantity, panel.unit),
    };
    let (left, top) = (scale.left - AXIS_WIDTH, scale.top - 20.0);
    svg += &text(left, top, "start", "font-weight=\"600\"", &heading);
    svg += &grid(panel, scale);
    let labels = label_heights(&panel.lines, scale);
    // The first is ours, and nothing lies on it.
    for (line, label) in panel.lines.iter().zip(labels).rev() {
        let place = subjects.iter().position(|subject| *subject == line.subject);
        let colour = COLOURS[place.unwrap_or_default() % COLOURS.len()];
        svg += &draw_line(panel, line, scale, colour, label);
    }
    svg += "</g>\n";
    svg
}

/// Horizontal rules with their values, and the key counts or seconds below.
fn grid(panel: &Panel, scale: &Scale) -> String {
    let mut svg = String::new();
    for value in scale.range.steps() {
        let y = scale.y(value);
        let (from, to) = (scale.left, scale.left + PLOT_WIDTH);
        let opacity = if value == 0.0 { 0.8 } else { 0.25 };
        let _ = writeln!(
            svg,
            "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" \
             stroke=\"{TEXT}\" stroke-opacity=\"{opacity}\"/>"
        );
        let words = if scale.is_difference { signed(value) } else { format!("{value}") };
        svg += &text(from - 8.0, y + 4.0, "end", "", &words);
    }
    for keys in &panel.keys {
        if let Some(label) = panel.across.label(*keys) {
            svg += &text(scale.x(*keys), scale.bottom() + 20.0, "middle", "", &label);
        }
    }
    let middle = scale.left + PLOT_WIDTH / 2.0;
    let axis = match panel.across {
        Across::Keys => "keys (logarithmic)",
        Across::Tenths => "seconds",
    };
    svg += &text(middle, scale.bottom() + 38.0, "middle", "", axis);
    svg
}

fn draw_line(panel: &Panel, line: &Line, scale: &Scale, colour: &str, label: f64) -> String {
    let drawn = line.drawn();
    let places: Vec<(f64, f64)> = panel
        .keys
        .iter()
        .zip(&drawn)
        .map(|(keys, value)| (scale.x(*keys), scale.y(*value)))
        .collect();
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let points = points.join(" ");
    let mut svg = String::new();
    if let (true, [first, .., last]) = (line.is_difference(), &places[..]) {
        let zero = scale.y(0.0);
        let _ = writeln!(
            svg,
            "<polygon points=\"{:.1},{zero:.1} {points} {:.1},{zero:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.25\"/>",
            first.0, last.0
        );
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
         stroke-linejoin=\"round\"/>"
    );
    // Where there are many, each is a part of the line.
    for (x, y) in places.iter().filter(|_| places.len() <= MOST_DOTS) {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
    }
    let words = match line.is_difference() {
        // The line that others are held against says nothing more.
        true if line.values == line.ideal => line.subject.to_owned(),
        true => format!("{}: {}", line.subject, from_to(&drawn)),
        false => format!("{} {}", line.subject, figure(drawn.last().copied().unwrap_or_default())),
    };
    let style = format!("fill=\"{colour}\" font-weight=\"600\"");
    svg += &text(scale.left + PLOT_WIDTH + 10.0, label + 4.0, "start", &style, &words);
    svg
}

/// With its sign, unless it is nothing.
fn signed(value: f64) -> String {
    if value.round() == 0.0 { "0".to_owned() } else { format!("{value:+.0}") }
}

/// The least and the most of them.
fn from_to(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} to {}", signed(least), signed(most))
}

/// Where the labels go: at the ends of their lines, moved apart where lines end close together.
fn label_heights(lines: &[Line], scale: &Scale) -> Vec<f64> {
    let end = |line: &Line| scale.y(line.drawn().last().copied().unwrap_or_default());
    let mut heights: Vec<f64> = lines.iter().map(end).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // From the bottom up, each label at least a line's height above the one below it.
    order.sort_by(|one, other| heights[*other].total_cmp(&heights[*one]));
    let mut ceiling = scale.bottom();
    for index in order {
        heights[index] = heights[index].min(ceiling);
        ceiling = heights[index] - LABEL_HEIGHT;
    }
    heights
}

fn text(x: f64, y: f64, anchor: &str, style: &str, words: &str) -> String {
    let words = escape(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>\n")
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const TEXT: &str = "#7d8590";
/// Ours twice in blue and teal, peers in orange and purple.
const COLOURS: [&str; 4] = ["#2f81f7", "#1a9e8f", "#d9822b", "#a371f7"];
/// As many panels side by side as can be read on a page.
const COLUMNS: usize = 2;
const MARGIN: f64 = 24.0;
const PANEL_WIDTH: f64 = 620.0;
const PANEL_HEIGHT: f64 = PLOT_HEIGHT + 90.0;
const TOP: f64 = 92.0;
const FOOT: f64 = 10.0;
const LABEL_HEIGHT: f64 = 17.0;

/// Lines with more points than this have no dots.
const MOST_DOTS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;

    fn growth() -> Growth {
        let line = |subject, values: [f64; 3]| Line::new(subject, values.to_vec());
        let panel = Panel {
            quantity: "Time per decision",
            unit: Unit::NanosPerDecision,
            across: Across::Keys,
            keys: vec![1_000, 100_000, 10_000_000],
            lines: vec![line("one", [20.0, 60.0, 150.0]), line("other", [60.0, 200.0, 152.0])],
        };
        let (title, about) = ("Cost & keys <growing>".to_owned(), String::new());
        Growth { title, about, panels: vec![panel.clone(), panel] }
    }

    /// Every tag that is opened is closed, in the right order.
    fn is_well_formed(svg: &str) -> bool {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            let Some(end) = rest[start..].find('>') else { return false };
            let tag = &rest[start + 1..start + end];
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
            let closes = tag.starts_with('/');
            if closes && open.pop() != Some(name) {
                return false;
            }
            if !closes && !tag.ends_with('/') {
                open.push(name);
            }
            rest = &rest[start + end + 1..];
        }
        open.is_empty()
    }

    #[test]
    fn picture_is_well_formed_and_escapes_text() {
        let svg = render(&growth(), &Provenance::example());
        assert!(is_well_formed(&svg), "{svg}");
        assert!(svg.contains("Cost &amp; keys &lt;growing&gt;"));
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn labels_of_lines_that_end_together_are_moved_apart() {
        let growth = growth();
        let panel = &growth.panels[0];
        let scale = Scale::of(panel, Range::of(panel), (0.0, 0.0));
        let heights = label_heights(&panel.lines, &scale);
        assert!((heights[0] - heights[1]).abs() >= LABEL_HEIGHT);
    }

    #[test]
    fn differences_are_drawn_beside_nothing_and_say_how_large_they_are() {
        let line = |values: [f64; 3]| {
            Line::beside("one", values.to_vec(), vec![1_000.0, 2_000.0, 3_000.0])
        };
        let panel = Panel {
            quantity: "5 nodes",
            unit: Unit::Admitted,
            across: Across::Tenths,
            keys: vec![9, 10, 11],
            lines: vec![line([1_000.0, 2_700.0, 2_900.0]), line([1_000.0, 2_000.0, 3_000.0])],
        };
        let growth = Growth { title: String::new(), about: String::new(), panels: vec![panel] };
        let svg = render(&growth, &Provenance::example());
        assert!(is_well_formed(&svg), "{svg}");
        assert!(svg.contains(">one: -100 to +700<") && svg.contains(">one<"), "{svg}");
        assert!(svg.contains(">1</text>") && !svg.contains(">9</text>"), "whole seconds: {svg}");
    }
}
