//! One view of the case table, and what other libraries can make of it.

use crate::peers::Prepared;
use bytemuck::Pod;
use restride::Layout;
use restride::bench::cases::Case;
use restride::dtype::Dtype;

/// A case with its layouts.
pub struct Subject {
    /// Its row of the table.
    pub case: Case,
    /// The view.
    pub src: Layout,
    /// The row-major result.
    pub dst: Layout,
    /// Elements of the view's buffer.
    pub src_len: usize,
    /// Bytes of one element.
    pub element_size: usize,
}

/// A view that transposes equal matrices that lie one after the other.
#[derive(Clone, Copy)]
pub struct Matrices {
    /// Columns before, rows after.
    pub width: usize,
    /// Rows before, columns after.
    pub height: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
}

/// Work that is generic over the element.
pub trait Visit<'s> {
    /// Does it for one element type.
    fn elements<T: Pod + Send + Sync>(self) -> Option<Prepared<'s>>;
}

impl Subject {
    /// The layouts of a case.
    ///
    /// # Errors
    /// A sentence naming the case, for one that is no view or of an unknown element type.
    pub fn new(case: Case) -> Result<Self, String> {
        let refused = |error: String| format!("case {}: {error}", case.id);
        let dtype: Dtype = case.dtype.parse().map_err(|e| refused(format!("{e}")))?;
        let whole = Layout::row_major(&case.shape).map_err(|e| refused(e.to_string()))?;
        let src = whole.apply(&case.expr).map_err(|e| refused(e.to_string()))?;
        let dst = Layout::row_major(src.shape()).map_err(|e| refused(e.to_string()))?;
        Ok(Self { src_len: whole.numel(), element_size: dtype.size_bytes(), case, src, dst })
    }

    /// Bytes of the result.
    pub fn dst_bytes(&self) -> usize {
        self.dst.numel() * self.element_size
    }

    /// Distinct source bytes read and destination bytes written.
    pub fn bytes_moved(&self) -> u64 {
        self.src.lines(self.element_size, 64).bytes_used + self.dst_bytes() as u64
    }

    /// Calls `visit` with a type of the element's size; floats for 4 and 8 bytes, since some libraries have
    /// kernels for those alone.
    pub fn visit<'s>(&self, visit: impl Visit<'s>) -> Option<Prepared<'s>> {
        match self.element_size {
            1 => visit.elements::<u8>(),
            2 => visit.elements::<u16>(),
            3 => visit.elements::<[u8; 3]>(),
            4 => visit.elements::<f32>(),
            6 => visit.elements::<[u16; 3]>(),
            8 => visit.elements::<f64>(),
            12 => visit.elements::<[f32; 3]>(),
            16 => visit.elements::<[f64; 2]>(),
            _ => None,
        }
    }

    /// Extents and strides without unit axes, neighbours merged.
    fn merged(&self) -> Vec<(usize, isize)> {
        let mut axes: Vec<(usize, isize)> = Vec::new();
        for (&extent, &stride) in self.src.shape().iter().zip(self.src.strides()) {
            if extent == 1 {
                continue;
            }
            match axes.last_mut() {
                Some(last) if last.1 == stride * extent as isize => *last = (last.0 * extent, stride),
                _ => axes.push((extent, stride)),
            }
        }
        axes
    }

    /// The view as transposed matrices, where it is that.
    pub fn matrices(&self) -> Option<Matrices> {
        if self.src.is_padded() || self.src.offset() != 0 {
            return None;
        }
        match *self.merged() {
            [(width, 1), (height, pitch)] if pitch >= width as isize => {
                Some(Matrices { width, height, pitch: pitch as usize })
            }
            [(_, step), (width, 1), (height, pitch)]
                if pitch == width as isize && step == (width * height) as isize =>
            {
                Some(Matrices { width, height, pitch: width })
            }
            _ => None,
        }
    }

    /// Shape of the dense buffer and which of its axes each axis of the view is, where the view is no more
    /// than that.
    pub fn permutation(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        if self.src.is_padded() || self.src.offset() != 0 || self.src.numel() != self.src_len {
            return None;
        }
        let axes = self.merged();
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(axes[axis].1));
        let mut dense = 1;
        for &axis in order.iter().rev() {
            if axes[axis].1 != dense {
                return None;
            }
            dense *= axes[axis].0 as isize;
        }
        let shape = order.iter().map(|&axis| axes[axis].0).collect();
        let place = |axis| order.iter().position(|&o| o == axis);
        Some((shape, (0..axes.len()).filter_map(place).collect()))
    }
}
