//! A 3x3 convolution with padding as one product of matrices: the windows (im2col) are a view of the padded
//! image, padding included, so that a single copy lays them out.
//!
//!     cargo run --release --example sliding_windows

use restride::{Error, Tensor};

fn main() -> Result<(), Error> {
    let (channels, height, width) = (3, 8, 10);
    let image = Tensor::from_fn(&[channels, height, width], |k| (k % 13) as f32 - 6.0)?;
    let kernel: Vec<f32> = (0..channels * 9).map(|k| (k % 5) as f32 - 2.0).collect();

    // (channel, y, x) -> pad -> windows (channel, y, x, dy, dx) -> (y, x, channel, dy, dx)
    let windows = image
        .view()
        .pad(&[(0, 0), (1, 1), (1, 1)], 0.0)?
        .unfold(1, 3, 1)?
        .unfold(2, 3, 1)?
        .permute(&[1, 2, 0, 3, 4])?;
    println!(
        "windows {:?}, {} of them over {} elements",
        windows.shape(),
        height * width,
        image.as_slice().len()
    );
    assert!(windows.layout().is_padded());

    // Each row of the matrix is one window; the convolution is one dot product a row.
    let columns = windows.materialize()?;
    let result: Vec<f32> = columns
        .as_slice()
        .chunks_exact(channels * 9)
        .map(|window| window.iter().zip(&kernel).map(|(x, w)| x * w).sum())
        .collect();

    // The same, one position at a time.
    for (y, x) in [(0usize, 0usize), (3, 4), (7, 9)] {
        let mut expected = 0.0;
        for c in 0..channels {
            for (dy, dx) in (0..9).map(|k| (k / 3, k % 3)) {
                let (iy, ix) = ((y + dy).wrapping_sub(1), (x + dx).wrapping_sub(1));
                if iy < height && ix < width {
                    expected += image.view().get(&[c, iy, ix])? * kernel[c * 9 + dy * 3 + dx];
                }
            }
        }
        assert_eq!(result[y * width + x], expected);
    }
    println!("row 0 of the result: {:?}", &result[..width]);
    Ok(())
}
