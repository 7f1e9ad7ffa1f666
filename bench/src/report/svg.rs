//! The growth picture, drawn by hand: one panel per quantity, key counts on a logarithmic axis,
//! every line labelled at its end. Colours are middle tones without a background, so that the
//! picture reads on light and on dark pages.

use std::fmt::Write;

use super::{Across, Growth, Line, Panel, Provenance, count_of, figure};

/// The whole picture.
pub(crate) fn render(growth: &Growth, provenance: &Provenance) -> String {
    let width = MARGIN + PANEL_WIDTH * growth.panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" \
         width=\"{width}\" height=\"{HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{TEXT}\">\n"
    );
    let title = escape(&growth.title);
    let _ = writeln!(svg, "<title>{title}</title>");
    svg += &text(MARGIN, 26.0, "start", "font-size=\"17\" font-weight=\"600\"", &growth.title);
    let subjects = subjects(growth);
    for (index, panel) in growth.panels.iter().enumerate() {
        svg += &draw_panel(panel, &subjects, MARGIN + PANEL_WIDTH * index as f64);
    }
    svg += &text(MARGIN, HEIGHT - 12.0, "start", "font-size=\"11\"", &provenance.caption());
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

fn draw_panel(panel: &Panel, subjects: &[&str], left: f64) -> String {
    let scale = Scale::of(panel, left);
    let mut svg = String::from("<g>\n");
    let heading = format!("{}, {}", panel.quantity, panel.unit);
    svg += &text(left, TOP - 20.0, "start", "font-weight=\"600\"", &heading);
    svg += &grid(panel, &scale);
    let labels = label_heights(&panel.lines, &scale);
    for (line, label) in panel.lines.iter().zip(labels) {
        let place = subjects.iter().position(|subject| *subject == line.subject);
        let colour = COLOURS[place.unwrap_or_default() % COLOURS.len()];
        svg += &draw_line(panel, line, &scale, colour, label);
    }
    svg += "</g>\n";
    svg
}

/// Horizontal rules with their values, and the key counts below.
fn grid(panel: &Panel, scale: &Scale) -> String {
    let mut svg = String::new();
    for step in 0..=scale.steps {
        let value = scale.step * f64::from(step);
        let y = scale.y(value);
        let (from, to) = (scale.left, scale.left + PLOT_WIDTH);
        let opacity = if step == 0 { 0.8 } else { 0.25 };
        let _ = writeln!(
            svg,
            "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" \
             stroke=\"{TEXT}\" stroke-opacity=\"{opacity}\"/>"
        );
        svg += &text(from - 8.0, y + 4.0, "end", "", &format!("{value}"));
    }
    for keys in &panel.keys {
        svg += &text(scale.x(*keys), BOTTOM + 20.0, "middle", "", &count_of(*keys));
    }
    let middle = scale.left + PLOT_WIDTH / 2.0;
    let axis = match panel.across {
        Across::Keys => "keys (logarithmic)",
        Across::Seconds => "seconds",
    };
    svg += &text(middle, BOTTOM + 40.0, "middle", "", axis);
    svg
}

fn draw_line(panel: &Panel, line: &Line, scale: &Scale, colour: &str, label: f64) -> String {
    let places: Vec<(f64, f64)> = panel
        .keys
        .iter()
        .zip(&line.values)
        .map(|(keys, value)| (scale.x(*keys), scale.y(*value)))
        .collect();
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut svg = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
         stroke-linejoin=\"round\"/>\n",
        points.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
    }
    let last = line.values.last().copied().unwrap_or_default();
    let words = format!("{} {}", line.subject, figure(last));
    let style = format!("fill=\"{colour}\" font-weight=\"600\"");
    svg += &text(scale.left + PLOT_WIDTH + 10.0, label + 4.0, "start", &style, &words);
    svg
}

/// Where the labels go: at the ends of their lines, moved apart where lines end close together.
fn label_heights(lines: &[Line], scale: &Scale) -> Vec<f64> {
    let mut heights: Vec<f64> =
        lines.iter().map(|line| scale.y(line.values.last().copied().unwrap_or_default())).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // From the bottom up, each label at least a line's height above the one below it.
    order.sort_by(|one, other| heights[*other].total_cmp(&heights[*one]));
    let mut ceiling = BOTTOM;
    for index in order {
        heights[index] = heights[index].min(ceiling);
        ceiling = heights[index] - LABEL_HEIGHT;
    }
    heights
}

/// From values to places in the picture.
struct Scale {
    left: f64,
    across: Across,
    first: f64,
    breadth: f64,
    step: f64,
    steps: u32,
}

impl Scale {
    fn of(panel: &Panel, left: f64) -> Self {
        let first = panel.keys.first().copied().unwrap_or(1).max(1) as f64;
        let last = panel.keys.last().copied().unwrap_or(1).max(1) as f64;
        let values = panel.lines.iter().flat_map(|line| &line.values);
        let largest = values.copied().filter(|value| value.is_finite()).fold(1.0, f64::max);
        let step = round_step(largest / 5.0);
        let (first, last) = match panel.across {
            Across::Keys => (first.log10(), last.log10()),
            Across::Seconds => (first, last),
        };
        Self {
            left: left + AXIS_WIDTH,
            across: panel.across,
            first,
            breadth: (last - first).max(1.0),
            step,
            steps: (largest / step).ceil() as u32,
        }
    }

    fn x(&self, keys: usize) -> f64 {
        let place = match self.across {
            Across::Keys => (keys.max(1) as f64).log10(),
            Across::Seconds => keys as f64,
        };
        let share = (place - self.first) / self.breadth;
        self.left + 14.0 + share * (PLOT_WIDTH - 28.0)
    }

    fn y(&self, value: f64) -> f64 {
        let top_value = self.step * f64::from(self.steps);
        BOTTOM - value / top_value * (BOTTOM - TOP)
    }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on.
fn round_step(at_least: f64) -> f64 {
    let decade = 10_f64.powf(at_least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * decade >= at_least);
    factor.unwrap_or(10.0) * decade
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
const MARGIN: f64 = 24.0;
const PANEL_WIDTH: f64 = 520.0;
const PLOT_WIDTH: f64 = 320.0;
const AXIS_WIDTH: f64 = 44.0;
const HEIGHT: f64 = 440.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 350.0;
const LABEL_HEIGHT: f64 = 17.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;

    fn growth() -> Growth {
        let line = |subject, values: [f64; 3]| Line { subject, values: values.to_vec() };
        let panel = Panel {
            quantity: "Time per decision",
            unit: Unit::NanosPerDecision,
            across: Across::Keys,
            keys: vec![1_000, 100_000, 10_000_000],
            lines: vec![line("one", [20.0, 60.0, 150.0]), line("other", [60.0, 200.0, 152.0])],
        };
        Growth { title: "Cost & keys <growing>".to_owned(), panels: vec![panel.clone(), panel] }
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
        let heights = label_heights(&panel.lines, &Scale::of(panel, 0.0));
        assert!((heights[0] - heights[1]).abs() >= LABEL_HEIGHT);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(round_step(37.0), 50.0);
        assert_eq!(round_step(120.0), 200.0);
        assert_eq!(round_step(5.0), 5.0);
    }
}
