//! `restride machine`.

use super::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<(), Failure> {
    Ok(())
}
