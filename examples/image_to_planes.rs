//! An 8-bit image, height x width x RGB, becomes normalised floats, planes first, in one pass over memory.
//!
//!     cargo run --release --example image_to_planes

use restride::{Error, Layout, Tensor, View, ViewMut, map_copy};

fn main() -> Result<(), Error> {
    let (height, width) = (240, 320);
    let pixels: Vec<u8> = (0..height * width * 3).map(|k| (k * 31 % 256) as u8).collect();
    let image = View::new(&pixels, Layout::row_major(&[height, width, 3])?)?;

    // Same mean and deviation for all channels: the function runs inside the copy.
    let mut planes = vec![0f32; pixels.len()];
    let mut dst = ViewMut::new(&mut planes, Layout::row_major(&[3, height, width])?)?;
    map_copy(&image.permute(&[2, 0, 1])?, &mut dst, |byte| (f32::from(byte) / 255.0 - 0.5) / 0.25)?;

    // A mean and a deviation per channel: one call a plane, into a part of the destination.
    let (means, deviations) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let mut tensor = Tensor::from_fn(&[3, height, width], |_| 0f32)?;
    for channel in 0..3 {
        let src = image.apply(&format!("[:, :, {channel}]"))?;
        let mut dst = tensor.view_mut().apply(&format!("[{channel}]"))?;
        let (mean, deviation) = (means[channel], deviations[channel]);
        map_copy(&src, &mut dst, |byte| (f32::from(byte) / 255.0 - mean) / deviation)?;
    }

    for (y, x, c) in [(0, 0, 0), (17, 200, 1), (239, 319, 2)] {
        let byte = f32::from(image.get(&[y, x, c])?);
        assert_eq!(planes[(c * height + y) * width + x], (byte / 255.0 - 0.5) / 0.25);
        assert_eq!(tensor.view().get(&[c, y, x])?, (byte / 255.0 - means[c]) / deviations[c]);
    }
    println!(
        "{height}x{width} RGB to {:?} f32, the first values: {:?}",
        tensor.shape(),
        &tensor.as_slice()[..3]
    );
    Ok(())
}
