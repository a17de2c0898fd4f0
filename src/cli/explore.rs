//! `restride explore`: one buffer, many views, as a page.

use super::Failure;
use super::failure::{check_bytes, read_dtype, read_shape};
use crate::bench::record::write_beside;
use crate::error::words::counted;
use crate::report::{self, Views, views_of};
use std::path::PathBuf;

/// Draws views of one buffer as a page: which cell and which cache line each position reads.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  restride explore -o explore.html\n  restride explore --shape 4,6 '.T' '[:, ::2]' '.unfold(1, 3)' -o views.html"
)]
pub(crate) struct Args {
    /// View expressions, one each; none shows the default set
    #[arg(value_name = "EXPR")]
    exprs: Vec<String>,
    /// Extents of the array that the buffer was made as; "" is rank 0
    #[arg(long, default_value = "3,4", allow_hyphen_values = true)]
    shape: String,
    /// Element type; its size decides how many elements share a cache line
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Bytes of a cache line [default: 64, or 16 for buffers with fewer than four real lines]
    #[arg(long, value_name = "BYTES")]
    line: Option<usize>,
    /// The page to write
    #[arg(short, long, value_name = "OUT.html")]
    output: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let extents = read_shape(&args.shape)?;
    let dtype = read_dtype(&args.dtype)?;
    if args.line.is_some_and(|l| !l.is_power_of_two() || l > 4096) {
        return Err(Failure::usage(
            "line",
            "--line: a cache line has a power of two of bytes up to 4096, such as 64",
        ));
    }
    check_bytes(&crate::Layout::row_major(&extents)?, dtype.size_bytes())?;
    let views = views_of(&extents, &args.exprs, dtype, args.line)
        .map_err(|(expr, refusal)| Failure::refused(&expr, &refusal))?;
    write_page(&args, &views)
}

fn write_page(args: &Args, views: &Views) -> Result<(), Failure> {
    if let Some(why) = views.views.iter().find_map(|v| v.too_large(views.element_size(), views.line_bytes)) {
        return Err(Failure::new("too_large", why));
    }
    let html = report::explore(views, &super::report::command_line(std::env::args()));
    write_beside(&args.output, html.as_bytes())
        .map_err(|e| Failure::new("io", format!("cannot write {}: {e}", args.output.display())))?;
    super::text::print(&format!(
        "{}: {} of {}, {} KiB\n",
        args.output.display(),
        counted(views.views.len(), "view"),
        counted(views.base.numel(), "element"),
        html.len().div_ceil(1024)
    ))
}
