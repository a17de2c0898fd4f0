//! What the cache model takes into account beyond the caches themselves.

use super::Failure;
use crate::cachesim::{Options, Replacement, TlbSpec};
use crate::machine::caches::parse_bytes;

/// Options of the cache model; without any it is the plain LRU model.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct ModelArgs {
    /// With --model: sort misses into compulsory, capacity and conflict
    #[arg(long, requires = "model")]
    classes: bool,
    /// With --model: a miss of the first level also fetches the next line
    #[arg(long, requires = "model")]
    prefetch: bool,
    /// With --model: a TLB of so many entries, ways, and bytes a page, as in 64/4/4K
    #[arg(long, requires = "model", value_name = "ENTRIES/WAYS/PAGE")]
    tlb: Option<String>,
    /// With --model: which line leaves a full set, lru or tree-plru
    #[arg(long, requires = "model", value_name = "POLICY", default_value = "lru", hide_default_value = true)]
    replacement: String,
}

impl ModelArgs {
    /// The options of the model.
    ///
    /// # Errors
    /// A TLB or a policy that cannot be read (exit code 2).
    pub fn options(&self) -> Result<Options, Failure> {
        let replacement = match self.replacement.as_str() {
            "lru" => Replacement::Lru,
            "tree-plru" => Replacement::TreePlru,
            other => {
                let message = format!("--replacement: {other:?} is not known: write lru or tree-plru");
                return Err(Failure::usage("caches", message));
            }
        };
        Ok(Options {
            replacement,
            prefetch_next_line: self.prefetch,
            tlb: self.tlb.as_deref().map(read_tlb).transpose()?,
            classes: self.classes,
        })
    }
}

fn read_tlb(text: &str) -> Result<TlbSpec, Failure> {
    let refuse = || {
        let message = format!("--tlb: {text:?} is no ENTRIES/WAYS/PAGE with whole sets: write it as 64/4/4K");
        Failure::usage("caches", message)
    };
    let parts: Vec<&str> = text.split('/').collect();
    let [entries, ways, page] = parts[..] else { return Err(refuse()) };
    let entries: u64 = entries.trim().parse().map_err(|_| refuse())?;
    let ways: u64 = ways.trim().parse().map_err(|_| refuse())?;
    let page = parse_bytes(page.trim()).map_err(|_| refuse())?;
    let whole = page > 0 && ways > 0 && entries > 0 && entries.is_multiple_of(ways);
    whole.then(|| TlbSpec::new(entries, ways, page)).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tlb_is_read() {
        assert_eq!(read_tlb("64/4/4K").unwrap(), TlbSpec::new(64, 4, 4096));
        for text in
            ["", "64", "64/4", "64/0/4K", "0/4/4K", "65/4/4K", "64/4/0", "a/4/4K", "64/4/4K/1", "64/4/4X"]
        {
            assert_eq!(read_tlb(text).unwrap_err().code, 2, "{text}");
        }
    }
}
