//! Size by stride as a heat map, and the cliff at power-of-two row pitches.

use crate::report::charts::{Axis, Format, Heat, HeatCell, Line, Point, Series};
use crate::report::data::{Case, Data};
use crate::report::facts::{self, is_plain};
use crate::report::num::{bytes, count, counts, time, times};
use maud::{Markup, html};

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    let anything =
        records.iter().any(|d| d.sweep("mountain").next().is_some() || d.sweep("pitch").next().is_some());
    if !anything {
        return super::missing(
            "No stride or row-pitch sweep in this record.",
            "restride bench --preset quick -o record.json",
        );
    }
    html! {
        @for (i, d) in records.iter().enumerate() {
            (super::which(records, d))
            (mountain(d, i))
            (cliff(d, i))
            (cliff_misses(d, i))
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut out: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
    out.sort_by(f64::total_cmp);
    out.dedup();
    out
}

fn mountain(d: &Data, i: usize) -> Markup {
    let cases: Vec<&Case> = d.sweep("mountain").filter(|c| is_plain(c)).collect();
    let sizes = sorted(cases.iter().filter_map(|c| c.working_set_bytes()));
    let strides = sorted(cases.iter().filter_map(|c| c.num("stride")));
    let cells = (cases.iter())
        .filter_map(|c| {
            let (size, stride) = (c.working_set_bytes()?, c.num("stride")?);
            Some(HeatCell {
                column: strides.iter().position(|s| *s == stride)?,
                row: sizes.iter().position(|s| *s == size)?,
                value: c.ns_per_element()?.median,
                note: String::new(),
                marks: Vec::new(),
            })
        })
        .collect();
    Heat {
        id: format!("mountain-{i}"),
        title: "Memory mountain: time per element by size and stride".into(),
        reading: "Dark is fast. To the right the walk skips further, so that less of each line is used; upwards the data \
                  outgrows the caches. Once a stride skips whole lines, going further costs little more, until it leaves \
                  the reach of the TLB."
            .into(),
        x_label: "stride in elements".into(),
        y_label: "working set".into(),
        columns: strides.iter().map(|s| count(*s)).collect(),
        rows: sizes.iter().map(|s| bytes(*s)).collect(),
        cells,
        unit: "ns per element",
    }
    .figure()
    .unwrap_or_default()
}

/// The power of two that a pitch lies beside (within a tenth), where there is one.
fn beside(pitch: f64) -> Option<f64> {
    let power = 2f64.powf(pitch.log2().round());
    (power >= 8.0 && (pitch / power - 1.0).abs() <= 0.1).then_some(power)
}

/// One series a power of two: the distance of the pitch from it, and what `y` says there.
fn pitch_series(
    d: &Data,
    pattern: &str,
    y: impl Fn(&Case) -> Option<(f64, Option<(f64, f64)>)>,
) -> Vec<(f64, Vec<Point>)> {
    let mut out: Vec<(f64, Vec<Point>)> = Vec::new();
    for c in d.sweep("pitch").filter(|c| is_plain(c) && c.str("pattern").is_none_or(|p| p == pattern)) {
        let Some(pitch) = c.num("row_pitch").filter(|p| *p >= 1.0) else { continue };
        let (Some(power), Some((y, range))) = (beside(pitch), y(c)) else { continue };
        let point = Point { x: pitch - power, y, range, note: format!("pitch {}", count(pitch)) };
        match out.iter_mut().find(|s| s.0 == power) {
            Some(s) => s.1.push(point),
            None => out.push((power, vec![point])),
        }
    }
    out.sort_by(|a, b| a.0.total_cmp(&b.0));
    out
}

fn distance() -> Axis {
    Axis::new("row pitch: elements away from the power of two", Format::Count, false)
}

fn cliff(d: &Data, i: usize) -> Markup {
    let time_of = |c: &Case| c.ns_per_element().map(|s| (s.median, Some((s.low, s.high))));
    let mut series: Vec<Series> =
        (pitch_series(d, "column", time_of).into_iter().zip([1, 3, 4, 7, 6, 5].into_iter().cycle()))
            .map(|((power, points), style)| Series {
                name: format!("transposed, {}", count(power)),
                style,
                joined: true,
                points,
            })
            .collect();
    if let Some((power, points)) = pitch_series(d, "row", time_of).pop() {
        series.push(Series { name: format!("row-major, {}", count(power)), style: 0, joined: true, points });
    }
    let reading = match facts::cliffs(d).first() {
        Some(c) if c.at / c.beside >= 1.2 => format!(
            "At a row pitch of {} the transposed walk takes {}, {} its neighbours' {}. All rows of a power-of-two \
             pitch fall into the same few sets of the cache; one line of padding a row takes the cliff away.",
            counts(c.pitch, "element"),
            time(c.at),
            times(c.at / c.beside),
            time(c.beside)
        ),
        Some(c) => {
            format!(
                "No cliff here: the worst power of two ({}) costs {} its neighbours.",
                count(c.pitch),
                times(c.at / c.beside)
            )
        }
        None => String::new(),
    };
    Line {
        id: format!("cliff-{i}"),
        title: "The leading-dimension cliff".into(),
        reading,
        x: distance(),
        y: Axis::new("ns per element", Format::Unit("ns"), false),
        series,
        edges: Vec::new(),
    }
    .figure()
    .unwrap_or_default()
}

fn cliff_misses(d: &Data, i: usize) -> Markup {
    let mut series = Vec::new();
    for (k, l) in d.caches().into_iter().enumerate() {
        if let Some((power, points)) =
            pitch_series(d, "column", |c| Some((c.model_misses(&l.name)?, None))).pop()
        {
            series.push(Series {
                name: format!("model {}, {}", l.name, count(power)),
                style: [0, 2, 4, 5][k % 4],
                joined: true,
                points,
            });
        }
    }
    Line {
        id: format!("cliff-misses-{i}"),
        title: "The same cliff in the cache model".into(),
        reading: "Misses per element of the transposed walk around the largest power of two, by the model; nothing here was timed.".into(),
        x: distance(),
        y: Axis::new("misses per element", Format::Unit(""), false),
        series,
        edges: Vec::new(),
    }
    .figure()
    .unwrap_or_default()
}
