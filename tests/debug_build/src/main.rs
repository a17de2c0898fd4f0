//! Copies on threads with small stacks, in a build without any optimisation, where every local of an inlined
//! kernel has a place of its own in the frame. Run by `scripts/test_debug_build.sh`.

use restride::copy::reference;
use restride::{
    BytesView, BytesViewMut, CopyOptions, Error, Isa, Layout, View, ViewMut, copy_bytes, map_copy_with,
};

/// A quarter of what threads get by default.
const STACK_BYTES: usize = 512 << 10;

/// Views that together need every kind of loop: runs, repeats, gathers, interleaves, transposes and any strides.
const VIEWS: &[(&[usize], &str)] = &[
    (&[130, 70], ".T"),
    (&[67, 131], ".T"),
    (&[300, 1200], ".T"),
    (&[8, 33, 17], ".permute(2, 0, 1)"),
    (&[8, 33, 17], ".permute(1, 0, 2)"),
    (&[100, 90], "[:, ::3]"),
    (&[100, 90], "[::2, ::-7]"),
    (&[100, 90], "[:, ::-1]"),
    (&[2, 500], ".T"),
    (&[3, 500], ".T"),
    (&[500, 3], ".T"),
    (&[500, 1], ".expand(-1, 70)"),
    (&[500], ".expand(70, -1)"),
    (&[200, 3], "[:, ::-1]"),
    (&[40, 50], ".pad((1, 2), (3, 4))"),
    (&[40, 50], ".T.pad((1, 2), (3, 4))"),
    (&[30, 30], ".unfold(0, 3).unfold(1, 3)"),
];

fn copies(shape: &[usize], expr: &str, size: usize, isa: Isa) -> Result<(), Error> {
    let data: Vec<u8> =
        (0..shape.iter().product::<usize>() * size).map(|k| (k * 7 + k / 251) as u8).collect();
    let layout = Layout::row_major(shape)?.apply(expr)?;
    let dst = Layout::row_major(layout.shape())?;
    let fill = vec![0xEEu8; size];
    let src = BytesView::new(&data, layout.clone(), size)?.with_fill(&fill)?;
    let mut expected = vec![0u8; dst.numel() * size];
    reference::copy((&layout, &data), (&dst, &mut expected), size, &fill)?;
    for streaming in [false, true] {
        for skew in [0, 5] {
            let options = CopyOptions::default().isa(isa).streaming(streaming);
            let mut to = vec![0u8; expected.len() + skew];
            copy_bytes(&src, &mut BytesViewMut::new(&mut to[skew..], dst.clone(), size)?, &options)?;
            assert!(to[skew..] == expected, "{isa} {size} {shape:?} {expr} {streaming} {skew}");
        }
    }
    Ok(())
}

fn maps(isa: Isa, streaming: bool) -> Result<(), Error> {
    let x: Vec<u8> = (0..300 * 301).map(|k| k as u8).collect();
    let mut y = vec![0f32; x.len()];
    let src = View::new(&x, Layout::row_major(&[300, 301])?)?.t()?;
    let mut dst = ViewMut::new(&mut y, Layout::row_major(&[301, 300])?)?;
    map_copy_with(&src, &mut dst, f32::from, &CopyOptions::default().isa(isa).streaming(streaming))?;
    assert!(src.iter().map(f32::from).eq(y), "{isa} {streaming}");
    Ok(())
}

fn main() {
    let run = || -> Result<(), Error> {
        for isa in Isa::available() {
            for size in [1, 2, 3, 4, 8, 12, 16, 24] {
                VIEWS.iter().try_for_each(|(shape, expr)| copies(shape, expr, size, isa))?;
            }
            maps(isa, false)?;
            maps(isa, true)?;
        }
        Ok(())
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread");
    thread.join().expect("no panic").expect("every copy");
    println!("{} levels copied on stacks of {} KiB", Isa::available().len(), STACK_BYTES >> 10);
}
