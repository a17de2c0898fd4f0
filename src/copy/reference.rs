//! The oracle: every logical position on its own. Slow on purpose.

use crate::{Error, Layout};

/// Copies element by element, by the layouts' own arithmetic; padded source positions read `fill`.
/// Elements are `size` bytes.
///
/// # Errors
/// What the layouts' index arithmetic refuses; `LengthMismatch` when a slice is too short for a padded view.
///
/// # Panics
/// When a slice is too short for a view that is not padded.
pub fn copy(
    (src, src_data): (&Layout, &[u8]),
    (dst, dst_data): (&Layout, &mut [u8]),
    size: usize,
    fill: &[u8],
) -> Result<(), Error> {
    if src.mask().is_none() && dst.mask().is_none() && src.shape() == dst.shape() && src.numel() > 0 {
        let at = |layout: &Layout| layout.offset() * size as isize;
        let from = (src.strides(), at(src), src_data);
        strided(src.shape(), from, (dst.strides(), at(dst), dst_data), size);
        return Ok(());
    }
    let short = |got: usize, index: usize| Error::LengthMismatch { got: got / size, expected: index + 1 };
    for k in 0..src.numel() {
        let from = match src.view_at(k)? {
            Some(index) => src_data.chunks_exact(size).nth(index).ok_or(short(src_data.len(), index))?,
            None => fill,
        };
        if let Some(index) = dst.view_at(k)? {
            let got = dst_data.len();
            let to = dst_data.chunks_exact_mut(size).nth(index).ok_or(short(got, index))?;
            to.copy_from_slice(from);
        }
    }
    Ok(())
}

/// Copies element by element between bare strided buffers: (strides in elements, byte of the first
/// element, bytes).
///
/// # Panics
/// When a position leaves its buffer.
pub(crate) fn strided(
    shape: &[usize],
    (src, from, src_data): (&[isize], isize, &[u8]),
    (dst, to, dst_data): (&[isize], isize, &mut [u8]),
    size: usize,
) {
    let (Some((&extent, shape)), Some((&s, src)), Some((&d, dst))) =
        (shape.split_first(), src.split_first(), dst.split_first())
    else {
        let (from, to) = (from as usize, to as usize);
        dst_data[to..to + size].copy_from_slice(&src_data[from..from + size]);
        return;
    };
    for k in 0..extent as isize {
        let (from, to) = (from + k * s * size as isize, to + k * d * size as isize);
        strided(shape, (src, from, src_data), (dst, to, dst_data), size);
    }
}
