//! The case table: what is benchmarked, under one name everywhere.

/// One view that is benchmarked.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Stable name.
    pub id: String,
    /// The question it answers.
    pub group: &'static str,
    /// Extents of the input, row-major.
    pub shape: Vec<usize>,
    /// Element type as the command line names it.
    pub dtype: &'static str,
    /// The view expression.
    pub expr: String,
}

fn case(group: &'static str, name: &str, shape: &[usize], dtype: &'static str, expr: &str) -> Case {
    Case { id: format!("{group}/{name}/{dtype}"), group, shape: shape.to_vec(), dtype, expr: expr.into() }
}

/// Square matrices, transposed: powers of two, their neighbours, and a length that is no multiple of a line.
pub fn squares() -> Vec<Case> {
    let square = |n: usize, dtype| case("square", &n.to_string(), &[n, n], dtype, ".T");
    let mut cases = Vec::new();
    for n in [64, 256, 512, 1000, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 8192] {
        cases.push(square(n, "f32"));
    }
    for n in [1024, 2048, 4096, 8192] {
        cases.push(square(n, "f64"));
    }
    for n in [1024, 4096, 8192] {
        cases.push(square(n, "u8"));
    }
    for n in [1024, 2048, 4096] {
        cases.push(square(n, "u16"));
    }
    cases.push(square(2048, "c128"));
    cases.push(square(2048, "bytes12"));
    cases.push(square(2048, "bytes3"));
    cases
}

/// Pixels to planes and back.
pub fn pixels() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in ["u8", "f32"] {
        for (name, shape) in
            [("24mpx", &[4000, 6000][..]), ("1080p", &[1080, 1920]), ("224x32", &[32, 224, 224])]
        {
            let (batch, image) = shape.split_at(shape.len() - 2);
            let hwc = [batch, image, &[3]].concat();
            let chw = [batch, &[3], image].concat();
            let (planar, back) = match batch.len() {
                0 => (".permute(2, 0, 1)", ".permute(1, 2, 0)"),
                _ => (".permute(0, 3, 1, 2)", ".permute(0, 2, 3, 1)"),
            };
            cases.push(case("pixels", &format!("{name}-to-planes"), &hwc, dtype, planar));
            cases.push(case("pixels", &format!("{name}-to-pixels"), &chw, dtype, back));
        }
    }
    cases
}

/// Views that libraries of tensors make all day.
pub fn layers() -> Vec<Case> {
    vec![
        case("layers", "attention", &[8, 16, 1024, 64], "f32", ".permute(0, 2, 1, 3)"),
        case("layers", "to-channels-last", &[32, 64, 112, 112], "f32", ".permute(0, 2, 3, 1)"),
        case("layers", "to-channels-first", &[32, 112, 112, 64], "f32", ".permute(0, 3, 1, 2)"),
        case("layers", "batched-mT", &[8, 2048, 256], "f32", ".mT"),
        case("layers", "pad", &[64, 56, 56, 64], "f32", ".pad((1, 1), (1, 1), (1, 1), (1, 1))"),
        case("layers", "pad-image", &[64, 56, 56, 64], "f32", ".pad((0, 0), (1, 1), (1, 1), (0, 0))"),
        case("layers", "bit-reversal", &[2; 22], "f64", ".T"),
    ]
}

/// Slices, steps, reversals and broadcasts of one large matrix.
pub fn slices() -> Vec<Case> {
    let matrix = |name, expr| case("slices", name, &[4096, 4096], "f32", expr);
    vec![
        matrix("columns-by-2", "[:, ::2]"),
        matrix("rows-by-2-columns-by-3", "[::2, ::3]"),
        matrix("columns-reversed", "[:, ::-1]"),
        matrix("rows-reversed", "[::-1]"),
        matrix("left", "[:, :2000]"),
        matrix("corner-transposed", "[:2000, :3000].T"),
        case("slices", "row-broadcast", &[4096], "f32", ".broadcast_to(4096, 4096)"),
        case("slices", "column-broadcast", &[4096, 1], "f32", ".broadcast_to(4096, 4096)"),
    ]
}

/// The public set of tensor transposes: 29 shapes of about 200 MB. Not part of [`all`]: it takes its time.
///
/// # Panics
/// Never: the list is part of the program, and a test reads it.
pub fn transposes() -> Vec<Case> {
    let line = |text: &str| -> Option<Case> {
        let row: serde_json::Value = serde_json::from_str(text).ok()?;
        let shape: Vec<usize> =
            row["shape"].as_array()?.iter().map(|n| n.as_u64().map(|n| n as usize)).collect::<Option<_>>()?;
        let expr = row["expr"].as_str()?;
        let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
        Some(case("transposes", &format!("{}{expr}", extents.join("x")), &shape, "f32", expr))
    };
    include_str!("transposes.jsonl")
        .lines()
        .map(|text| line(text).expect("the list of transposes is well-formed"))
        .collect()
}

/// Every case of this table but [`transposes`].
pub fn all() -> Vec<Case> {
    [squares(), pixels(), layers(), slices()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_expressions_are_views() {
        let cases = [all(), transposes()].concat();
        let names: HashSet<_> = cases.iter().map(|c| c.id.clone()).collect();
        assert_eq!(names.len(), cases.len());
        for c in cases {
            let layout = Layout::row_major(&c.shape).unwrap();
            layout.apply(&c.expr).unwrap_or_else(|error| panic!("{}: {error}", c.id));
        }
    }
}
