//! How much memory a command may use: `--memory 4G`, or a quarter of what there is.

use super::Failure;
use crate::machine::pages::Pages;
use std::fs;

/// Reads a size such as `4G`, `512M`, `64K` or `1048576`; units are powers of 1024.
pub(crate) fn read_size(option: &str, text: &str) -> Result<usize, Failure> {
    let wrong = || {
        Failure::usage(
            "size",
            format!("{option} {text:?} is no size: write a number with K, M, G or T, as in 4G"),
        )
    };
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match trimmed[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse::<u64>().map_err(|_| wrong()),
        false => Err(wrong()),
    };
    let (whole, _) = (number(whole)?, number(part)?);
    let fraction: f64 = format!("0.{part}").parse().map_err(|_| wrong())?;
    let bytes =
        whole.checked_mul(1 << shift).and_then(|b| b.checked_add((fraction * (1u64 << shift) as f64) as u64));
    match bytes.and_then(|b| usize::try_from(b).ok()) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(wrong()),
    }
}

/// The most memory that this process had resident so far; `None` where the system does not say.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    // Not `getrusage`, whose maximum includes that of the program which started this one.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process may use in all: the machine's, or less where a control group says so.
pub(crate) fn all_bytes() -> usize {
    let ram = Pages::host().ram_bytes.unwrap_or(4 << 30);
    let limit = control_group_bytes(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default(), &|path| {
        fs::read_to_string(path).ok()
    });
    usize::try_from(limit.map_or(ram, |limit| ram.min(limit))).unwrap_or(usize::MAX)
}

/// The smallest limit on the way up from this process's control group.
fn control_group_bytes(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let mut smallest = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(mut path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        loop {
            path = path.trim_end_matches('/');
            let limit =
                read(&format!("{root}{path}/{file}")).and_then(|text| text.trim().parse::<u64>().ok());
            smallest = [smallest, limit].into_iter().flatten().min();
            let Some(parent) = path.rfind('/') else { break };
            path = &path[..parent];
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("4G", 4usize << 30),
            ("512m", 512 << 20),
            ("64K", 64 << 10),
            ("1000", 1000),
            ("1.5 GiB", 3 << 29),
            ("2tb", 2 << 40),
        ] {
            assert_eq!(read_size("--memory", text).unwrap(), bytes, "{text}");
        }
        for text in ["", "0", "G", "-1", "4X", "1e9", "99999999999999999999", "99999999T", "1.2.3", "+5"] {
            let failure = read_size("--memory", text).unwrap_err();
            assert_eq!(failure.code, 2, "{text}");
            assert!(failure.message.contains("--memory"), "{}", failure.message);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_is_at_least_what_is_touched() {
        let touched = vec![1u8; 64 << 20];
        assert!(peak_resident_bytes().unwrap() >= touched.len() as u64);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max",
                "/sys/fs/cgroup/a/memory.max" => "1000",
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "500",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "9223372036854771712",
                _ => return None,
            };
            Some(text.to_string())
        };
        assert_eq!(control_group_bytes("0::/a/b\n", &files), Some(1000));
        assert_eq!(control_group_bytes("5:cpu,memory:/x\n", &files), Some(500));
        assert_eq!(control_group_bytes("5:cpu:/x\n0::/\n", &files), None);
        assert_eq!(control_group_bytes("", &files), None);
    }
}
