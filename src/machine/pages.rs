//! Page sizes, huge pages, and physical memory.

use std::path::Path;
use std::sync::OnceLock;

/// Page bytes taken where the system does not say.
pub const DEFAULT_PAGE_BYTES: usize = 4096;

/// When the kernel backs anonymous memory with transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    any(feature = "instruments", feature = "profile"),
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum HugeMode {
    /// Wherever it can.
    Always,
    /// Where the program asks for them.
    Madvise,
    /// Never.
    Never,
}

/// Page sizes and memory of one machine; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(any(feature = "instruments", feature = "profile"), derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pages {
    /// Bytes of a base page.
    pub page_bytes: usize,
    /// Bytes of a transparent huge page.
    pub huge_page_bytes: Option<usize>,
    /// When transparent huge pages are used.
    pub huge_mode: Option<HugeMode>,
    /// Reserved huge pages: bytes of one, number of them, ascending by size.
    pub reserved: Vec<(usize, usize)>,
    /// Physical memory in bytes.
    pub ram_bytes: Option<u64>,
}

impl Pages {
    /// This machine, read once and kept.
    ///
    /// # Examples
    /// ```
    /// let pages = restride::machine::pages::Pages::host();
    /// assert!(pages.page_bytes.is_power_of_two());
    /// ```
    pub fn host() -> &'static Self {
        static HOST: OnceLock<Pages> = OnceLock::new();
        HOST.get_or_init(|| Self::from_root(Path::new("/"), page_bytes()))
    }

    /// Reads `sys` and `proc` below a root directory; the base page is given, no table holds it.
    pub fn from_root(root: &Path, page_bytes: usize) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).ok();
        let huge = text("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        let mut reserved: Vec<(usize, usize)> = std::fs::read_dir(root.join("sys/kernel/mm/hugepages"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let kib: usize = entry
                    .file_name()
                    .to_str()?
                    .strip_prefix("hugepages-")?
                    .strip_suffix("kB")?
                    .parse()
                    .ok()?;
                let count = std::fs::read_to_string(entry.path().join("nr_hugepages")).ok()?;
                Some((kib.checked_mul(1024)?, count.trim().parse().ok()?))
            })
            .collect();
        reserved.sort_unstable();
        Self {
            page_bytes,
            huge_page_bytes: huge
                .and_then(|text| text.trim().parse().ok())
                .filter(|&bytes: &usize| bytes.is_power_of_two() && bytes > page_bytes),
            huge_mode: text("sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| mode(&text)),
            reserved,
            ram_bytes: text("proc/meminfo").and_then(|text| meminfo(&text, "MemTotal")),
        }
    }

    /// Whether a program that asks for huge pages can get them.
    pub fn huge_possible(&self) -> bool {
        self.huge_page_bytes.is_some() && matches!(self.huge_mode, Some(HugeMode::Always | HugeMode::Madvise))
    }
}

/// Memory that can be had without swapping, in bytes; `None` where the system does not say.
pub fn available_bytes() -> Option<u64> {
    meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// What became of a piece of advice about pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// The kernel took it.
    Taken,
    /// The range holds no whole page of the kind.
    TooSmall,
    /// The kernel refused with this error number.
    Refused {
        /// The error number.
        errno: i32,
    },
    /// This system has no such advice.
    Unsupported,
}

/// Asks for huge pages under the whole base pages of a range; never changes its contents.
///
/// `len` is in bytes. Ranges shorter than a huge page are left alone.
pub fn advise_huge(start: *const u8, len: usize) -> Advice {
    match Pages::host().huge_page_bytes {
        Some(huge) if len >= huge => advise(start, len, true),
        _ => Advice::TooSmall,
    }
}

/// Asks for base pages under the whole base pages of a range; never changes its contents.
///
/// `len` is in bytes. Where the kernel has no huge pages there is nothing to ask for.
pub fn advise_no_huge(start: *const u8, len: usize) -> Advice {
    advise(start, len, false)
}

// Miri knows no such call.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(start: *const u8, len: usize, huge: bool) -> Advice {
    let page = Pages::host().page_bytes;
    let skip = start.align_offset(page);
    let whole = len.saturating_sub(skip) / page * page;
    if whole == 0 {
        return Advice::TooSmall;
    }
    let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: MADV_HUGEPAGE and MADV_NOHUGEPAGE change how memory is backed, never what it holds or
    // whether it is mapped; the kernel checks the range and answers ENOMEM or EINVAL for a wrong one.
    let result = unsafe { libc::madvise(start.wrapping_add(skip).cast_mut().cast(), whole, advice) };
    match result {
        0 => Advice::Taken,
        _ => Advice::Refused { errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0) },
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_start: *const u8, _len: usize, _huge: bool) -> Advice {
    Advice::Unsupported
}

/// The share (0 to 1) of a touched range that huge pages back; `None` where the system does not say.
///
/// `len` is in bytes. The kernel counts huge pages per mapping: where a mapping reaches beyond the
/// range, its huge pages are taken to be spread evenly over it.
pub fn huge_share(start: *const u8, len: usize) -> Option<f64> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    share_in(&smaps, start.addr() as u64, len as u64)
}

/// [`huge_share`] of a range of addresses by the text of an `smaps` table.
fn share_in(smaps: &str, start: u64, len: u64) -> Option<f64> {
    let end = start.checked_add(len)?;
    let mut overlap = 0; // of the current mapping with the range, in bytes
    let mut resident = 0_u64;
    let (mut huge, mut covered) = (0.0_f64, 0_u64);
    for line in smaps.lines() {
        let Some((key, value)) = line.split_once(':') else {
            overlap = 0;
            continue;
        };
        match key {
            "Rss" => resident = kib(value)?,
            "AnonHugePages" if overlap > 0 && resident > 0 => {
                covered += overlap;
                huge += overlap as f64 * (kib(value)? as f64 / resident as f64).min(1.0);
            }
            "AnonHugePages" => covered += overlap,
            _ => {
                // A mapping's first line is `from-to permissions offset device:minor inode path`: its
                // first colon is that of the device, the other lines have a plain key before theirs.
                if let Some((low, high)) = key.split_whitespace().next().and_then(address_range) {
                    overlap = high.min(end).saturating_sub(low.max(start));
                    resident = 0;
                }
            }
        }
    }
    (covered > 0).then(|| huge / covered as f64)
}

fn address_range(word: &str) -> Option<(u64, u64)> {
    let (low, high) = word.split_once('-')?;
    Some((u64::from_str_radix(low, 16).ok()?, u64::from_str_radix(high, 16).ok()?))
}

/// `"   123 kB"` in bytes.
fn kib(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn mode(text: &str) -> Option<HugeMode> {
    let chosen = text.split_whitespace().find(|word| word.starts_with('['))?;
    match chosen.trim_matches(['[', ']']) {
        "always" => Some(HugeMode::Always),
        "madvise" => Some(HugeMode::Madvise),
        "never" => Some(HugeMode::Never),
        _ => None,
    }
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        if key.trim() == name { kib(value) } else { None }
    })
}

#[cfg(unix)]
fn page_bytes() -> usize {
    // SAFETY: sysconf reads a number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(DEFAULT_PAGE_BYTES)
}

#[cfg(not(unix))]
fn page_bytes() -> usize {
    DEFAULT_PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
Rss:                4096 kB\n\
AnonHugePages:      2048 kB\n\
VmFlags: rd wr mr mw me ac sd hg \n\
7f0000400000-7f0000800000 rw-p 00000000 08:01 123                        /some/file\n\
Size:               4096 kB\n\
Rss:                   0 kB\n\
AnonHugePages:         0 kB\n";

    #[test]
    fn huge_share_is_read_per_mapping() {
        let share = |start, len| share_in(SMAPS, start, len);
        assert_eq!(share(0x7f00_0000_0000, 4 << 20), Some(0.5));
        assert_eq!(share(0x7f00_0000_0000, 8 << 20), Some(0.25));
        assert_eq!(share(0x7f00_0040_0000, 4 << 20), Some(0.0));
        assert_eq!(share(0x1000, 4096), None);
        assert_eq!(share_in(SMAPS, u64::MAX, 4096), None);
        assert_eq!(share_in("", 0, 4096), None);
    }

    #[test]
    fn modes_are_read() {
        assert_eq!(mode("always [madvise] never\n"), Some(HugeMode::Madvise));
        assert_eq!(mode("[always] madvise never"), Some(HugeMode::Always));
        assert_eq!(mode("always madvise never"), None);
        assert_eq!(mode("[other]"), None);
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(meminfo("MemTotal:       24684092 kB\n", "MemTotal"), Some(24_684_092 * 1024));
        assert_eq!(meminfo("MemTotal: many\n", "MemTotal"), None);
        assert_eq!(meminfo("", "MemTotal"), None);
    }

    #[test]
    fn advice_on_own_memory_keeps_its_contents() {
        let data: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
        for advice in [advise_huge(data.as_ptr(), data.len()), advise_no_huge(data.as_ptr(), data.len())] {
            // A kernel without huge pages answers EINVAL: that is an answer too.
            assert!(!matches!(advice, Advice::Refused { errno: libc::ENOMEM }), "{advice:?}");
        }
        assert!(data.iter().enumerate().all(|(i, &byte)| byte == (i % 251) as u8));
        assert_eq!(advise_no_huge(data.as_ptr(), 10), Advice::TooSmall);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_host_says_what_backs_a_touched_buffer() {
        let data = vec![1_u8; 1 << 20];
        let share = huge_share(data.as_ptr(), data.len()).expect("smaps is there on Linux");
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}
