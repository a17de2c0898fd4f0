//! Rows whose elements lie apart, and a neighbouring axis that reads the same source lines: how many of each make a
//! tile.

use super::crowd::{WAYS, crowded};
use super::{Draft, FEW, LANE, LINE, TINY};
use crate::copy::kernels::MAX_STEPS;
use crate::copy::plan::{Group, Piece, Strategy};

/// A tile of short gathered rows holds so many elements, and so many bytes.
const DOWN_ELEMENTS: usize = 4096;
pub(super) const DOWN_BYTES: usize = 16 << 10;

/// Source lines that a row of wide elements touches in one tile hold so many bytes: several of those stay in the
/// first-level cache.
const ACROSS_BYTES: usize = 16 << 10;

impl Draft<'_> {
    /// Rows along the innermost destination axis, in tiles with the axis whose source steps are
    /// smaller, so that a source line serves several rows while it is in the first-level cache.
    pub(super) fn gather_tiled(&mut self, strategy: Strategy, lead: usize) -> Piece {
        let lead = self.axes.remove(lead);
        let Some(inner) = self.axes.pop() else {
            unreachable!("the leading source axis is not the innermost destination axis")
        };
        let (mut rows, mut columns) = (Group::axis(lead), Group::axis(inner));
        let bytes = inner.extent * self.element;
        if strategy == Strategy::Deinterleave && bytes >= 2 * LINE && inner.extent * lead.extent >= TINY / 4 {
            columns.cut(4096 / self.element, LINE);
        } else {
            // Rows that follow each other in the destination are written one after the other, and the source lines
            // that they touch are still at hand when the tile beside them comes.
            let lines = DOWN_BYTES * 2 / LINE / columns.extent();
            if let Some(&next) = self.axes.last()
                && next.dst.unsigned_abs() < lead.dst.unsigned_abs()
                && next.extent.min(lines) >= 32
            {
                self.axes.pop();
                self.axes.push(lead);
                rows = Group::axis(next);
                rows.cut(lines, 1);
                return self.finish_gather(strategy, rows, columns);
            }
            let near = inner.src.unsigned_abs() <= 512 || inner.extent <= 32;
            let wide = self.element == LANE || self.element == 8 && near;
            if wide && !self.streaming && !crowded(inner.src, inner.extent.min(64), WAYS) {
                return self.gather_across(strategy, rows, columns);
            }
            columns.cut((1024 / self.element).max(16), LINE);
            // Short rows are worth a tile's call only when they are many; of long ones, as many as use up the
            // source lines that a row touches.
            let few = DOWN_ELEMENTS.min(DOWN_BYTES / self.element) / columns.full();
            let want = (256 / lead.src.unsigned_abs()).max(8).max(few).min(MAX_STEPS);
            while rows.extent() < want && columns.full() == columns.extent() {
                let Some(axis) = self.axes.pop() else { break };
                rows.push(axis);
            }
            rows.cut(want, 1);
        }
        self.finish_gather(strategy, rows, columns)
    }

    /// [`Draft::gather_tiled`] for wide elements, which are taken row after row: a row of a table costs less than a
    /// tile. The source lines that a row touches must still be at hand when the row beside it comes.
    fn gather_across(&mut self, strategy: Strategy, mut rows: Group, mut columns: Group) -> Piece {
        let inner = columns.axes()[0];
        let apart = inner.src.unsigned_abs().clamp(self.element, LINE);
        columns.cut(ACROSS_BYTES / apart, LINE / self.element);
        let want = (ACROSS_BYTES * 4 / (columns.full() * self.element)).clamp(8, MAX_STEPS);
        while rows.extent() < want && columns.full() == columns.extent() {
            let Some(axis) = self.axes.pop() else { break };
            rows.push(axis);
        }
        rows.cut(want, 1);
        self.finish_gather(strategy, rows, columns)
    }

    /// [`Draft::gather_tiled`], once the tile is chosen.
    fn finish_gather(&mut self, strategy: Strategy, rows: Group, columns: Group) -> Piece {
        let close = columns.axes()[0].src.unsigned_abs() <= FEW * self.element;
        let slides = self.slides && LINE.is_multiple_of(self.element) && close;
        self.streaming &= columns.full() * self.element >= 4 * LINE;
        let staged = self.streaming && !slides;
        self.finish(strategy, rows, columns, staged)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CopyOptions, Layout, Plan};

    fn plan(shape: &[usize], expr: &str, size: usize, streaming: bool) -> Plan {
        let src = Layout::row_major(shape).unwrap().apply(expr).unwrap();
        let dst = Layout::row_major(src.shape()).unwrap();
        let tuning = crate::Tuning::default();
        Plan::new(&src, &dst, size, &CopyOptions::default().threads(1).tuning(tuning).streaming(streaming))
            .unwrap()
    }

    /// Strategy, rows and columns of a tile, and how many tiles there are.
    fn tiles(plan: &Plan) -> (&'static str, usize, usize, usize) {
        let piece = &plan.pieces()[0];
        let tiles = piece.loops.iter().map(|l| l.count).product();
        (plan.strategy(), piece.rows.full(), piece.columns.full(), tiles)
    }

    #[test]
    fn many_small_matrices_of_wide_elements_share_a_tile() {
        let lanes = plan(&[300, 12, 7, 5], ".permute(1, 0, 3, 2)", 16, false);
        assert_eq!(tiles(&lanes), ("gather_tiled", 5 * 100, 7, 12 * 3));
        let past = plan(&[300, 12, 7, 5], ".permute(1, 0, 3, 2)", 16, true);
        assert_eq!(past.strategy(), "transpose");
        let halves = plan(&[32, 224, 9], ".permute(1, 2, 0)[::3, 1:8, 1:20]", 8, false);
        assert_eq!(tiles(&halves), ("gather_tiled", 7 * 38, 19, 2));
    }

    #[test]
    fn thin_tiles_of_narrow_elements_go_element_by_element() {
        let narrow = plan(&[5, 32, 100, 64], ".permute(0, 2, 3, 1)[:, 28:78, 20:40, ::3]", 2, false);
        assert_eq!(narrow.strategy(), "gather_tiled");
        let square = plan(&[64, 16, 16], ".permute(0, 2, 1)", 2, false);
        assert_eq!(square.strategy(), "transpose");
    }

    #[test]
    fn source_lines_of_one_set_are_few_in_a_tile() {
        let crowded = plan(&[100, 256], ".T[:3]", 16, false);
        assert_eq!(tiles(&crowded), ("gather_tiled", 3, 64, 2));
        assert_eq!(plan(&[100, 256], ".T", 16, false).strategy(), "transpose");
        let short = plan(&[32, 16, 4, 64], ".permute(3, 0, 1, 2)[20:57, :, ::-3, ::2]", 16, false);
        assert_eq!(short.strategy(), "transpose");
        let apart = plan(&[100, 255], ".T", 16, false);
        assert_eq!(tiles(&apart), ("gather_tiled", 37, 100, 7));
    }

    #[test]
    fn cells_are_made_of_elements_narrower_than_a_lane() {
        let expr = ".permute(1, 0, 2)[:, 13:327, ::3]";
        assert_eq!(plan(&[512, 64, 8], expr, 16, false).strategy(), "gather");
        assert_eq!(plan(&[512, 64, 8], expr, 8, false).strategy(), "shuffle");
    }
}
