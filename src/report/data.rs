//! What the page reads out of a record: everything optional, nothing that can become NaN.

use super::num;
use crate::bench::record::Record;
use crate::bench::stats::Summary;
use serde_json::Value;

/// One record as the page sees it.
pub struct Data {
    /// Short name in legends; different for every record of one page.
    pub label: String,
    /// The record's text, as it was read.
    pub text: String,
    /// The whole record.
    pub record: Record,
    /// The same as JSON.
    pub value: Value,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// One measured case.
pub struct Case {
    /// Its name in the record.
    pub id: String,
    /// `walk`, `chase`, `copy`, `tile`, `peer`, or one this version does not know.
    pub kind: String,
    /// Parameters, as written.
    pub params: Value,
    /// Cache model, as written.
    pub model: Value,
    /// Counters, as written.
    pub counters: Vec<Value>,
    /// Time of one pass, ns.
    pub time_ns: Option<Stat>,
    /// Time of the interleaved memcpy, ns.
    pub memcpy_ns: Option<Stat>,
    /// Distinct bytes read plus bytes written.
    pub bytes_moved: Option<f64>,
}

/// A median and its confidence interval (about 95 %).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stat {
    /// Median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Stat {
    /// Of samples; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let s = Summary::of(samples)?;
        Some(Self { median: s.median, low: s.low, high: s.high, samples: s.samples })
    }

    /// Each value through `f`; `None` when one of them is no finite number any more.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Option<Self> {
        let (a, b) = (f(self.low), f(self.high));
        let out = Self { median: f(self.median), low: a.min(b), high: a.max(b), samples: self.samples };
        (out.median.is_finite() && out.low.is_finite() && out.high.is_finite()).then_some(out)
    }

    /// Half width of the interval as a share of the median.
    pub fn spread(self) -> Option<f64> {
        let s = (self.high - self.low) / 2.0 / self.median;
        s.is_finite().then_some(s)
    }
}

impl Data {
    /// Reads a record's text; `origin` names it in errors. Records of older versions are brought up to this one.
    ///
    /// # Errors
    ///
    /// One sentence when the text is not a record of this or an older version.
    pub fn parse(text: String, origin: &str) -> Result<Self, String> {
        let record = Record::parse(&text, origin).map_err(|e| e.to_string())?;
        Self::of(record, text)
    }

    /// The record as the page sees it; `text` is how it was written.
    ///
    /// # Errors
    ///
    /// One sentence when the record cannot be written as JSON.
    pub fn of(record: Record, text: String) -> Result<Self, String> {
        let value = serde_json::to_value(&record)
            .map_err(|e| format!("the record cannot be written as JSON: {e}"))?;
        let cases = value["cases"].as_array().into_iter().flatten().map(Case::read).collect();
        let mut data = Self { label: String::new(), text, record, value, cases };
        data.label = data.cpu();
        Ok(data)
    }

    /// The page's view of a record that was just made, with the text that a file of it holds: a line a case.
    ///
    /// # Errors
    ///
    /// One sentence when the record cannot be written as JSON.
    pub fn fresh(record: Record) -> Result<Self, String> {
        let mut data = Self::of(record, String::new())?;
        let (mut cases, mut head) = (Vec::new(), serde_json::Map::new());
        for (key, value) in data.value.as_object().into_iter().flatten() {
            match value.as_array().filter(|_| key == "cases") {
                Some(all) => cases = all.iter().map(Value::to_string).collect(),
                None => _ = head.insert(key.clone(), value.clone()),
            }
        }
        let head = format!("{:#}", Value::Object(head));
        let head = head.trim_end().trim_end_matches('}').trim_end();
        data.text = format!("{head},\n  \"cases\": [\n{}\n  ]\n}}\n", cases.join(",\n"));
        Ok(data)
    }

    /// Gives every record a label of its own: the machine, then the date, then a number.
    pub fn tell_apart(all: &mut [Self]) {
        for (i, first) in all.iter().map(Self::cpu).collect::<Vec<_>>().iter().enumerate() {
            let same = all.iter().filter(|d| d.cpu() == *first).count();
            let date = all[i].created().get(..10).map(str::to_owned).unwrap_or_default();
            let short = super::charts::cut(first, 48);
            all[i].label = if same > 1 && !date.is_empty() { format!("{short}, {date}") } else { short };
        }
        for i in 1..all.len() {
            let again = all[..i].iter().filter(|d| d.label == all[i].label).count();
            if again > 0 {
                all[i].label = format!("{} (record {})", all[i].label, i + 1);
            }
        }
    }

    /// Name of the CPU.
    pub fn cpu(&self) -> String {
        let names = [&self.machine()["cpu"], &self.fingerprint()["brand"]];
        names
            .into_iter()
            .filter_map(text)
            .find(|s| !s.trim().is_empty())
            .unwrap_or_else(|| "unknown CPU".into())
    }

    /// What identifies the machine.
    pub fn fingerprint(&self) -> &Value {
        &self.machine()["fingerprint"]
    }

    /// The machine object.
    pub fn machine(&self) -> &Value {
        &self.value["machine"]
    }

    /// The environment object.
    pub fn environment(&self) -> &Value {
        &self.value["environment"]
    }

    /// When it was made, as written.
    pub fn created(&self) -> String {
        text(&self.value["created"]).unwrap_or_default()
    }

    /// The command that made it.
    pub fn command(&self) -> String {
        text(&self.value["command"]).unwrap_or_default()
    }

    /// Whether it was made by the peers program and holds nothing else.
    pub fn only_peers(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(|c| c.kind == "peer")
    }

    /// Cases of one kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Case> {
        self.cases.iter().filter(move |c| c.kind == kind)
    }

    /// Walks and chases of one sweep.
    pub fn sweep<'a>(&'a self, sweep: &'a str) -> impl Iterator<Item = &'a Case> {
        self.cases.iter().filter(move |c| matches!(c.kind.as_str(), "walk" | "chase") && c.sweep() == sweep)
    }

    /// Data caches, nearest first.
    pub fn caches(&self) -> Vec<Cache> {
        let mut out: Vec<Cache> = Vec::new();
        for c in self.fingerprint()["caches"].as_array().into_iter().flatten() {
            let (Some(bytes), Some(level)) = (number(&c["bytes"]).filter(|b| *b > 0.0), number(&c["level"]))
            else {
                continue;
            };
            let kind = text(&c["type"]).unwrap_or_default();
            if kind == "Instruction" {
                continue;
            }
            let name = format!("L{level}{}", if kind == "Data" && level == 1.0 { "d" } else { "" });
            if out.iter().any(|o| o.name == name) {
                continue;
            }
            out.push(Cache { level, name, bytes, shared: c["probably_shared"].as_bool().unwrap_or(false) });
        }
        out.sort_by(|a, b| a.level.total_cmp(&b.level));
        out
    }
}

/// A data cache of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// 1 for the nearest.
    pub level: f64,
    /// `L1d`, `L2`, ...
    pub name: String,
    /// Its size.
    pub bytes: f64,
    /// Whether strangers probably use it too.
    pub shared: bool,
}

impl Case {
    fn read(v: &Value) -> Self {
        Self {
            id: text(&v["id"]).unwrap_or_default(),
            kind: text(&v["kind"]).unwrap_or_default(),
            params: v["params"].clone(),
            model: v["model"].clone(),
            counters: v["counters"].as_array().cloned().unwrap_or_default(),
            // A case that criterion counted in events has no time.
            time_ns: Stat::of(&numbers(&v["samples"])).filter(|_| v["unit"] == "ns"),
            memcpy_ns: Stat::of(&numbers(&v["memcpy_samples"])),
            bytes_moved: number(&v["bytes_moved"]).filter(|b| *b > 0.0),
        }
    }

    /// A parameter as text.
    pub fn str(&self, key: &str) -> Option<String> {
        text(&self.params[key]).filter(|s| !s.is_empty())
    }

    /// A parameter as a finite number.
    pub fn num(&self, key: &str) -> Option<f64> {
        number(&self.params[key])
    }

    /// A list parameter such as a shape.
    pub fn list(&self, key: &str) -> Vec<f64> {
        numbers(&self.params[key])
    }

    /// A flag; missing is false.
    pub fn flag(&self, key: &str) -> bool {
        self.params[key].as_bool().unwrap_or(false)
    }

    /// What a person calls it: its name, or its id.
    pub fn name(&self) -> String {
        match self.str("name") {
            Some(name) if matches!(self.kind.as_str(), "copy" | "peer") => name.replace('/', " "),
            Some(name) => name,
            None if self.id.is_empty() => "unnamed case".into(),
            None => self.id.clone(),
        }
    }

    /// What differs from a plain run (one thread, warm, ordinary pages), in words; empty when nothing does.
    pub fn variant(&self) -> String {
        let threads = match self.num("threads") {
            Some(t) if t > 1.0 => Some(num::counts(t, "thread")),
            // All cores were allowed, and one was found to be best.
            _ => self.id.ends_with("/all cores").then(|| "all cores allowed".to_owned()),
        };
        let cold = self.flag("cold").then(|| "cold".to_owned());
        let huge = self.str("pages").filter(|p| p == "huge").map(|_| "huge pages".to_owned());
        [threads, cold, huge].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Which chart it belongs to.
    pub fn sweep(&self) -> String {
        self.str("sweep").unwrap_or_else(|| match () {
            () if self.num("row_pitch").is_some() => "pitch".into(),
            () if self.str("pattern").as_deref() == Some("strided") => "mountain".into(),
            () => "ladder".into(),
        })
    }

    /// Elements that one pass reads.
    pub fn elements(&self) -> Option<f64> {
        let product = || Some(self.list("shape")).filter(|s| !s.is_empty()).map(|s| s.iter().product());
        self.num("elements")
            .or_else(|| self.num("numel"))
            .or_else(product)
            .filter(|n: &f64| *n > 0.0 && n.is_finite())
    }

    /// Bytes that the pass walks over.
    pub fn working_set_bytes(&self) -> Option<f64> {
        self.num("working_set_bytes").or(self.bytes_moved).filter(|b| *b > 0.0 && *b < 1e18)
    }

    /// Time per element, ns.
    pub fn ns_per_element(&self) -> Option<Stat> {
        let n = self.elements()?;
        self.time_ns?.map(|t| t / n)
    }

    /// Bytes moved per time, GB/s (decimal).
    pub fn gb_per_s(&self) -> Option<Stat> {
        let b = self.bytes_moved?;
        self.time_ns.filter(|t| t.low > 0.0)?.map(|t| b / t)
    }

    /// `bytes` of this case per its time, GB/s.
    pub fn rate(&self, bytes: Option<f64>) -> Option<f64> {
        let t = self.time_ns.filter(|t| t.median > 0.0)?;
        Some(bytes? / t.median).filter(|v| v.is_finite())
    }

    /// memcpy time over this case's time: 1 is as fast as memcpy, more is faster.
    pub fn ratio(&self) -> Option<Stat> {
        let m = self.memcpy_ns.filter(|m| m.median > 0.0)?;
        let t = self.time_ns.filter(|t| t.low > 0.0)?;
        let out = Stat {
            median: m.median / t.median,
            low: m.low / t.high,
            high: m.high / t.low,
            samples: t.samples.min(m.samples),
        };
        out.map(|v| v).filter(|s| (1e-6..1e6).contains(&s.median))
    }

    /// Misses per element that the cache model gives for the naive walk at one level.
    pub fn model_misses(&self, level: &str) -> Option<f64> {
        let m = if self.model["naive"].is_object() { &self.model["naive"] } else { &self.model };
        number(&m["misses_per_element"][level]).or_else(|| {
            let misses = number(&m["levels"][level]["misses"])?;
            Some(misses / self.elements()?)
        })
    }

    /// Value per element of a counter that was really counted, and the share of time it was counted.
    pub fn counted(&self, event: &str) -> Option<(f64, f64)> {
        let c = self.counters.iter().find(|c| text(&c["event"]).as_deref() == Some(event))?;
        let value = number(&c["value"])?;
        let n = self.elements()?;
        matches!(c["state"].as_str(), Some("Ok" | "Multiplexed"))
            .then(|| (value / n, number(&c["coverage"]).unwrap_or(1.0)))
    }

    /// Threads as text.
    pub fn threads(&self) -> String {
        self.num("threads").map_or_else(|| "1".into(), num::count)
    }
}

/// A string, or a number or flag as text.
pub fn text(v: &Value) -> Option<String> {
    match v {
        Value::String(s) => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(if *b { "yes" } else { "no" }.into()),
        _ => None,
    }
}

/// A finite number.
pub fn number(v: &Value) -> Option<f64> {
    v.as_f64().filter(|f| f.is_finite())
}

/// The finite numbers of a list.
pub fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().into_iter().flatten().filter_map(number).collect()
}

/// Geometric mean of the positive values; `None` of nothing.
pub fn geomean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.into_iter().filter(|v| *v > 0.0 && v.is_finite()).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rest: &str) -> Data {
        Data::parse(
            format!(r#"{{"schema":"restride.record/1","created":"2026-01-02","cases":[{rest}]}}"#),
            "test",
        )
        .unwrap()
    }

    #[test]
    fn zero_times_give_no_rate() {
        let d = record(
            r#"{"id":"a","kind":"copy","unit":"ns","samples":[0,0],"memcpy_samples":[1],"bytes_moved":8,"params":{"elements":0}},
               {"id":"b","kind":"copy","unit":"l1d-misses","samples":[5],"bytes_moved":8}"#,
        );
        let (a, b) = (&d.cases[0], &d.cases[1]);
        assert_eq!(a.time_ns.map(|t| t.median), Some(0.0));
        assert_eq!(
            (a.gb_per_s(), a.ratio(), a.ns_per_element(), a.time_ns.unwrap().spread()),
            (None, None, None, None)
        );
        assert_eq!(b.time_ns, None);
    }

    #[test]
    fn a_fresh_record_is_written_a_line_a_case_and_reads_back_the_same() {
        let old = record(
            r#"{"id":"a","kind":"copy","unit":"ns","samples":[0.1,5]},{"id":"b","kind":"walk","unit":"ns","samples":[]}"#,
        );
        let fresh = Data::fresh(old.record.clone()).unwrap();
        assert_eq!(fresh.text.lines().filter(|l| l.starts_with("{\"id\"")).count(), 2);
        assert_eq!(Data::parse(fresh.text, "fresh").unwrap().record, old.record);
    }

    #[test]
    fn labels_differ() {
        let mut all = [record(""), record(""), record("")];
        Data::tell_apart(&mut all);
        assert_eq!(all[0].label, "unknown CPU, 2026-01-02");
        assert_eq!(all[2].label, "unknown CPU, 2026-01-02 (record 3)");
    }

    #[test]
    fn refuses_what_is_no_record() {
        assert!(
            Data::parse("{}".into(), "x.json").is_err_and(|e| e.contains("x.json") && e.contains("schema"))
        );
        assert!(Data::parse("{".into(), "x.json").is_err_and(|e| e.contains("JSON")));
    }
}
