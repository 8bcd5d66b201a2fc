//! Charts as SVG: bars and lines with axes, units and a legend, without external files. A thin line at a value spans
//! the least to the most of its runs.

use std::fmt::Write;

use crate::report::{Chart, ChartKind, Point, Series};

const NAMESPACE: &str = "http://www.w3.org/2000/svg";
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 64.0;
/// Colours distinguishable without colour vision (Okabe and Ito's palette).
const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
/// Average width of a letter, to estimate whether names fit beside each other.
const LETTER_WIDTH: f64 = 7.0;
/// Maximum number of points of a line that have marks and numbers below them.
const MOST_MARKS: usize = 16;
/// Maximum number of intervals of the vertical axis.
const MOST_TICKS: f64 = 6.0;

impl Chart {
    /// The chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        let points = self.series.iter().flat_map(|series| &series.points).flatten();
        let highest = points.map(|point| point.spread.map_or(point.value, |(_, most)| most)).fold(0.0, f64::max);
        let step = tick_step(highest);
        let top = (highest / step).ceil().max(1.0) * step;
        let mut svg = Canvas::new(&self.title, &self.y_label);
        svg.vertical_axis(top, step);
        match &self.kind {
            ChartKind::Bars { categories } => svg.bars(categories, &self.series, top),
            ChartKind::Lines { x_label, x } => svg.lines(x_label, x, &self.series, top),
        }
        svg.legend(&self.series);
        svg.finish()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `highest` into at most `MOST_TICKS` intervals.
fn tick_step(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let raw = highest / MOST_TICKS;
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&step| step >= raw).unwrap_or(raw)
}

/// Returns a few round numbers from `low` to `high`.
fn round_numbers(low: f64, high: f64) -> Vec<f64> {
    let step = tick_step(high - low);
    let first = (low / step).ceil() as i64;
    (first..).map(|multiple| multiple as f64 * step).take_while(|&number| number <= high).take(2 * MOST_MARKS).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Formats a number without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

struct Canvas {
    svg: String,
}

/// Writes formatted text to the canvas; writing to a string cannot fail.
macro_rules! draw {
    ($canvas:expr, $($format:tt)*) => {{
        let _ = writeln!($canvas.svg, $($format)*);
    }};
}

impl Canvas {
    fn new(title: &str, y_label: &str) -> Self {
        let mut canvas = Canvas { svg: String::new() };
        draw!(
            canvas,
            r#"<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">"#
        );
        draw!(canvas, r#"<rect width="100%" height="100%" fill="white"/>"#);
        draw!(canvas, r#"<text x="{LEFT}" y="26" font-size="16">{}</text>"#, escape(title));
        let middle = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        draw!(
            canvas,
            r#"<text transform="translate(20 {middle}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escape(y_label)
        );
        canvas
    }

    fn vertical_axis(&mut self, top: f64, step: f64) {
        let end = WIDTH - RIGHT;
        let mut value = 0.0;
        while value <= top + step / 2.0 {
            let y = height_of(value, top);
            draw!(self, r##"<line x1="{LEFT}" y1="{y:.1}" x2="{end}" y2="{y:.1}" stroke="#dddddd"/>"##);
            let text_y = y + 4.0;
            draw!(self, r#"<text x="{}" y="{text_y:.1}" text-anchor="end">{}</text>"#, LEFT - 8.0, number(value));
            value += step;
        }
    }

    fn bars(&mut self, categories: &[String], series: &[Series], top: f64) {
        let group = (WIDTH - LEFT - RIGHT) / categories.len().max(1) as f64;
        let bar = 0.8 * group / series.len().max(1) as f64;
        let base = HEIGHT - BOTTOM;
        let longest = categories.iter().map(|category| category.chars().count()).max().unwrap_or(0);
        let staggered = longest as f64 * LETTER_WIDTH > group;
        for (position, category) in categories.iter().enumerate() {
            let start = LEFT + position as f64 * group;
            let middle = start + group / 2.0;
            let y = base + 20.0 + if staggered { 18.0 * (position % 2) as f64 } else { 0.0 };
            draw!(self, r#"<text x="{middle:.1}" y="{y}" text-anchor="middle">{}</text>"#, escape(category));
            for (index, series) in series.iter().enumerate() {
                let Some(&Some(point)) = series.points.get(position) else { continue };
                let x = start + 0.1 * group + index as f64 * bar;
                let y = height_of(point.value, top);
                draw!(
                    self,
                    r#"<rect x="{x:.1}" y="{y:.1}" width="{bar:.1}" height="{:.1}" fill="{}">{}</rect>"#,
                    base - y,
                    colour(index),
                    format_args!("<title>{}: {}</title>", escape(&series.name), describe(&point))
                );
                self.spread(x + bar / 2.0, &point, top);
            }
        }
    }

    fn lines(&mut self, x_label: &str, x: &[f64], series: &[Series], top: f64) {
        let (width, base) = (WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM);
        let (low, high) = x.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        let place = |x: f64| LEFT + if high > low { (x - low) / (high - low) * width } else { width / 2.0 };
        // Many points form a curve, drawn with round numbers below it and without marks.
        let is_curve = x.len() > MOST_MARKS;
        let ticks: Vec<f64> = if is_curve { round_numbers(low, high) } else { x.to_vec() };
        let mut taken = f64::MIN;
        for tick in ticks {
            let (x, text) = (place(tick), number(tick));
            let half = LETTER_WIDTH * text.len() as f64 / 2.0;
            // Numbers that would overlap are not drawn.
            if x - half >= taken {
                taken = x + half + LETTER_WIDTH;
                draw!(self, r#"<text x="{x:.1}" y="{}" text-anchor="middle">{text}</text>"#, base + 20.0);
            }
        }
        let middle = LEFT + width / 2.0;
        draw!(self, r#"<text x="{middle:.1}" y="{}" text-anchor="middle">{}</text>"#, base + 46.0, escape(x_label));
        for (index, series) in series.iter().enumerate() {
            let points: Vec<(f64, Point)> =
                x.iter().zip(&series.points).filter_map(|(&x, point)| Some((place(x), (*point)?))).collect();
            let path: Vec<String> =
                points.iter().map(|(x, point)| format!("{x:.1},{:.1}", height_of(point.value, top))).collect();
            let colour = colour(index);
            draw!(self, r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "));
            if is_curve {
                continue;
            }
            for (x, point) in points {
                let name = escape(&series.name);
                let (y, value) = (height_of(point.value, top), describe(&point));
                draw!(
                    self,
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}"><title>{name}: {value}</title></circle>"#
                );
                self.spread(x, &point, top);
            }
        }
    }

    /// Draws the line from the least to the most of the runs.
    fn spread(&mut self, x: f64, point: &Point, top: f64) {
        if let Some((least, most)) = point.spread {
            let (y1, y2) = (height_of(least, top), height_of(most, top));
            draw!(self, r##"<line x1="{x:.1}" y1="{y1:.1}" x2="{x:.1}" y2="{y2:.1}" stroke="#333333"/>"##);
        }
    }

    fn legend(&mut self, series: &[Series]) {
        let x = WIDTH - RIGHT + 16.0;
        for (index, series) in series.iter().enumerate() {
            let y = TOP + 22.0 * index as f64;
            draw!(self, r#"<rect x="{x}" y="{y}" width="14" height="14" fill="{}"/>"#, colour(index));
            draw!(self, r#"<text x="{}" y="{}">{}</text>"#, x + 20.0, y + 12.0, escape(&series.name));
        }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Vertical position of a value. Values below zero, which differences may have, are at the bottom.
fn height_of(value: f64, top: f64) -> f64 {
    HEIGHT - BOTTOM - value.max(0.0) / top * (HEIGHT - TOP - BOTTOM)
}

/// Formats a value and its spread.
fn describe(point: &Point) -> String {
    match point.spread {
        Some((least, most)) => format!("{} ({} to {})", number(point.value), number(least), number(most)),
        None => number(point.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: ChartKind) -> Chart {
        Chart {
            name: "x".to_owned(),
            title: "Cycles < 2000 & more".to_owned(),
            y_label: "CPU cycles".to_owned(),
            kind,
            series: vec![
                Series::new("published", [Some(1470.0.into()), None, Some(565.0.into())]),
                Series::new("here", [Some(900.0.into()), Some(500.0.into()), Some(0.0.into())]),
            ],
        }
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let categories = ["I-miss", "I-hit", "Data"].map(str::to_owned).to_vec();
        let svg = chart(ChartKind::Bars { categories }).to_svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("Cycles &lt; 2000 &amp; more") && svg.contains("CPU cycles") && svg.contains("I-hit"));
        // Background, five bars, two boxes of the legend.
        assert_eq!(svg.matches("<rect").count(), 8);
        let height = (HEIGHT - TOP - BOTTOM) * 1470.0 / 1500.0;
        assert!(svg.contains(&format!("height=\"{height:.1}\"")), "{svg}");
    }

    #[test]
    fn names_that_do_not_fit_beside_each_other_are_staggered() {
        let svg = |category: &str| chart(ChartKind::Bars { categories: vec![category.to_owned(); 3] }).to_svg();
        let lower = format!("y=\"{}\"", HEIGHT - BOTTOM + 38.0);
        assert!(!svg("Data").contains(&lower));
        assert!(svg("an Interest that no cache answers").contains(&lower));
    }

    #[test]
    fn lines_have_a_point_for_every_value() {
        let svg = chart(ChartKind::Lines { x_label: "threads".to_owned(), x: vec![1.0, 10.0, 20.0] }).to_svg();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (5, 2));
        assert!(svg.contains(">threads<") && svg.contains(">20<"));
    }

    #[test]
    fn curves_have_round_numbers_below_them() {
        let x: Vec<f64> = (0..60).map(|step| f64::from(step) * 3.137).collect();
        let mut chart = chart(ChartKind::Lines { x_label: "microseconds".to_owned(), x: x.clone() });
        chart.series = vec![Series::new("Data", vec![Some(Point::from(1.0)); x.len()])];
        let svg = chart.to_svg();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (0, 1));
        assert!(["0", "50", "100", "150"].iter().all(|number| svg.contains(&format!(">{number}<"))), "{svg}");
        assert_eq!(round_numbers(-1.0, 2.5), [-1.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn spreads_are_drawn_and_fit_in() {
        let mut chart = chart(ChartKind::Bars { categories: vec!["I-miss".to_owned()] });
        chart.series.truncate(1);
        let without = chart.to_svg().matches("<line").count();
        chart.series[0].points = vec![Some(Point { value: 1470.0, spread: Some((1400.0, 3000.0)) })];
        let svg = chart.to_svg();
        // The axis extends to the most, with six steps and zero.
        assert_eq!(without, 4);
        assert_eq!(svg.matches("<line").count(), 7 + 1);
        assert!(svg.contains("1470 (1400 to 3000)") && svg.contains(&format!("y2=\"{TOP:.1}\"")), "{svg}");
    }

    #[test]
    fn empty_charts_are_drawn_too() {
        let empty = Chart { series: Vec::new(), ..chart(ChartKind::Bars { categories: Vec::new() }) };
        assert!(empty.to_svg().contains("</svg>"));
        let empty = Chart { series: Vec::new(), ..chart(ChartKind::Lines { x_label: String::new(), x: Vec::new() }) };
        assert!(empty.to_svg().contains("</svg>"));
    }

    #[test]
    fn steps_are_round_and_few() {
        for (highest, step) in [(1470.0, 500.0), (43.0, 10.0), (6.0, 1.0), (0.07, 0.02), (0.0, 1.0)] {
            assert!((tick_step(highest) - step).abs() < 1e-9, "{highest}: {}", tick_step(highest));
        }
    }
}
