//! A `.npy` file in Fortran order becomes one in C order, through mapped memory, whole or not at all.
//!
//!     cargo run --release --example fortran_npy [IN.npy OUT.npy]
//!
//! Without arguments it makes its own input in a temporary folder. `restride materialize IN.npy "" -o OUT.npy`
//! does the same with a bound on memory and a check of the result.

use restride::npy::{Header, Input, Output};
use restride::{BytesView, BytesViewMut, CopyOptions, Layout, copy_bytes};
use std::error::Error;
use std::path::{Path, PathBuf};

fn to_c_order(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let input = Input::open(from)?;
    let header = input.header();
    let layout = Layout::row_major(&header.shape)?;
    let head = Header::render(&header.descr, false, &header.shape, header.version_to_write());

    // The output appears under its name when `commit` succeeds; until then it is a temporary file beside it.
    let mut output = Output::create(to, &head, input.data().len())?;
    let src = BytesView::new(input.data(), header.layout()?, header.element_size())?;
    let mut dst = BytesViewMut::new(output.data_mut(), layout, header.element_size())?;
    copy_bytes(&src, &mut dst, &CopyOptions::default())?;
    output.commit()?;
    println!(
        "{:?} {}: {} to {}",
        header.shape,
        String::from_utf8_lossy(&header.descr),
        from.display(),
        to.display()
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if let [from, to] = &arguments[..] {
        return to_c_order(from, to);
    }
    let folder = std::env::temp_dir().join(format!("restride-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (from, to) = (folder.join("fortran.npy"), folder.join("c.npy"));
    let mut file = Header::render(b"'<u2'", true, &[2, 3], (1, 0));
    file.extend([11u16, 21, 12, 22, 13, 23].iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(&from, file)?;
    let done = to_c_order(&from, &to);
    let written = std::fs::read(&to);
    std::fs::remove_dir_all(&folder)?;
    done?;
    let written = written?;
    let header = Header::parse(&written)?;
    assert!(!header.fortran_order);
    let values: Vec<u16> =
        written[header.data].chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    assert_eq!(values, [11, 12, 13, 21, 22, 23]);
    Ok(())
}
