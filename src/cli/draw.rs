//! Small views as text: which buffer cell each position reads, and the buffer as rows of cache lines.

use crate::Layout;
use std::collections::BTreeMap;

/// Views and buffers of more cells than this are not drawn.
pub(super) const MAX_CELLS: usize = 256;

/// The positions as a grid, each with the buffer index that it reads; padded ones show `fill`.
pub(super) fn positions(layout: &Layout, fill: &str) -> Option<String> {
    if layout.numel() == 0 || layout.numel() > MAX_CELLS {
        return None;
    }
    let cells: Vec<String> = (0..layout.numel())
        .map(|k| match layout.view_at(k) {
            Ok(Some(index)) => index.to_string(),
            _ => fill.to_owned(),
        })
        .collect();
    let width = cells.iter().map(String::len).max().unwrap_or(1);
    let columns = layout.shape().last().copied().unwrap_or(1);
    let rows = layout.shape().len().checked_sub(2).map_or(1, |axis| layout.shape()[axis]);
    let mut text = String::new();
    for (number, row) in cells.chunks(columns).enumerate() {
        if number > 0 && number % rows == 0 {
            text.push('\n');
        }
        let row: Vec<String> = row.iter().map(|cell| format!("{cell:>width$}")).collect();
        text.push_str(&row.join(" "));
        text.push('\n');
    }
    Some(text)
}

/// The buffer, one row a cache line: cells that are read by number (`xn` where read n times), others `·`.
pub(super) fn buffer(layout: &Layout, len: usize, element_size: usize, line_bytes: usize) -> Option<String> {
    if len == 0 || len > MAX_CELLS || layout.numel() > 16 * MAX_CELLS || element_size > line_bytes {
        return None;
    }
    let mut reads: BTreeMap<usize, usize> = BTreeMap::new();
    for k in 0..layout.numel() {
        if let Ok(Some(index)) = layout.view_at(k) {
            *reads.entry(index).or_default() += 1;
        }
    }
    let cells: Vec<String> = (0..len)
        .map(|index| match reads.get(&index) {
            None => "·".to_owned(),
            Some(1) => index.to_string(),
            Some(n) => format!("{index}x{n}"),
        })
        .collect();
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(1);
    let mut text = String::new();
    let mut line = usize::MAX;
    for (index, cell) in cells.iter().enumerate() {
        let own = index * element_size / line_bytes;
        if own != line {
            if line != usize::MAX {
                text.push_str(" |\n");
            }
            line = own;
            text.push_str(&format!("line {line:>3} |"));
        }
        text.push_str(&format!(" {cell:>width$}"));
    }
    text.push_str(" |\n");
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strided_view_marks_what_it_reads() {
        let layout = Layout::row_major(&[3, 4]).unwrap().apply("[1:, ::2]").unwrap();
        assert_eq!(positions(&layout, "0").unwrap(), " 4  6\n 8 10\n");
        let text = buffer(&layout, 12, 4, 16).unwrap();
        assert_eq!(text, "line   0 |  ·  ·  ·  · |\nline   1 |  4  ·  6  · |\nline   2 |  8  · 10  · |\n");
    }

    #[test]
    fn repeats_and_padding_are_shown() {
        let layout = Layout::row_major(&[2]).unwrap().apply(".pad((1, 0))[None].broadcast_to(2, 3)").unwrap();
        assert_eq!(positions(&layout, "p").unwrap(), "p 0 1\np 0 1\n");
        assert_eq!(buffer(&layout, 2, 8, 64).unwrap(), "line   0 | 0x2 1x2 |\n");
    }
}
