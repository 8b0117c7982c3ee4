//! The results of a simulated day: a table and a chart.

use std::fmt::Write;

use super::day::{MANNERS, Report, Sample, Tally};

/// Writes a line for each manner of endpoint, and one for all.
pub fn table(report: &Report) -> String {
    let mut text = String::from(
        "           endpoints  disabled     accepted    delivered     failed     parked    \
         skipped    pending     attempts  a delivery  latest\n",
    );
    let mut all = Tally::default();
    let mut line = |name: &str, tally: &Tally| {
        let disabled = tally.disabled_gone + tally.disabled_failing;
        let each = tally.attempts as f64 / (tally.accepted - tally.skipped).max(1) as f64;
        let _ = writeln!(
            text,
            "{name:<10} {:>9} {disabled:>9} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10} {:>12} \
             {each:>11.2} {:>6.1}s",
            tally.endpoints,
            tally.accepted,
            tally.delivered,
            tally.failed + tally.gone,
            tally.parked,
            tally.skipped,
            tally.pending,
            tally.attempts,
            tally.longest_delay.as_secs_f64(),
        );
    };
    for (manner, tally) in MANNERS.iter().zip(&report.tallies) {
        line(&format!("{manner:?}"), tally);
        all = Tally {
            endpoints: all.endpoints + tally.endpoints,
            accepted: all.accepted + tally.accepted,
            attempts: all.attempts + tally.attempts,
            delivered: all.delivered + tally.delivered,
            failed: all.failed + tally.failed,
            gone: all.gone + tally.gone,
            parked: all.parked + tally.parked,
            skipped: all.skipped + tally.skipped,
            pending: all.pending + tally.pending,
            disabled_gone: all.disabled_gone + tally.disabled_gone,
            disabled_failing: all.disabled_failing + tally.disabled_failing,
            longest_delay: all.longest_delay.max(tally.longest_delay),
        };
    }
    line("all", &all);
    text
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 46.0;

/// A panel's name, its color, and what it shows of a sample.
type Panel = (&'static str, &'static str, fn(&Sample) -> f64);

/// Draws four panels over the hours of the day, as SVG.
pub fn svg(report: &Report, title: &str) -> String {
    let panels: [Panel; 4] = [
        ("waiting to be sent or retried", "#2f6db5", |sample| sample.backlog as f64),
        ("attempts a second", "#2b8a5a", |sample| sample.attempts_per_second),
        ("attempts in flight", "#8a5a2b", |sample| f64::from(sample.in_flight)),
        ("endpoints disabled", "#b5382f", |sample| sample.disabled as f64),
    ];
    let height = TOP + panels.len() as f64 * (PANEL + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"34\" font-size=\"18\" font-weight=\"600\">{title}</text>\n",
    );
    for (at, panel) in panels.iter().enumerate() {
        draw(&mut svg, &report.samples, panel, TOP + at as f64 * (PANEL + GAP));
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, samples: &[Sample], (name, color, value): &Panel, top: f64) {
    let most = samples.iter().map(value).fold(0.0, f64::max);
    let (step, ceiling) = scale(most);
    let bottom = top + PANEL;
    let x = |hours: f64| LEFT + hours / 24.0 * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - value / ceiling * (PANEL - 22.0);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"{color}\" font-weight=\"600\">{name}</text>",
        top + 8.0,
    );
    let mut mark = 0.0;
    while mark <= ceiling + step / 2.0 {
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y(mark) + 4.0,
            short(mark),
            y = y(mark),
        );
        mark += step;
    }
    for hours in (0..=24).step_by(3) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{hours}:00</text>",
            x(f64::from(hours)),
            bottom + 16.0,
        );
    }
    let line: String = samples
        .iter()
        .map(|sample| format!("{:.1},{:.1} ", x(sample.hours), y(value(sample))))
        .collect();
    let end = samples.last().map_or(0.0, |sample| sample.hours);
    let _ = writeln!(
        svg,
        "<polygon points=\"{LEFT},{bottom} {line}{:.1},{bottom}\" fill=\"{color}\" \
         fill-opacity=\"0.12\"/>\
         <polyline points=\"{line}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\"/>",
        x(end),
    );
}

/// Returns a round step, and the multiple of it that is not below the largest value.
fn scale(most: f64) -> (f64, f64) {
    let rough = (most / 4.0).max(0.25);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * power >= rough);
    let step = step.unwrap_or(10.0) * power;
    (step, (most / step).ceil().max(1.0) * step)
}

/// Writes a number as `10 000 000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b' ')).into_owned()
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M", v / 1e6),
        v if v >= 1e4 => format!("{} k", v / 1e3),
        v => format!("{v}"),
    }
}
