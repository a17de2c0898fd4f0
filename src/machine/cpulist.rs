//! CPU sets as the kernel writes them: `0-3,8` and `00ff,00000001`.

/// Largest CPU number that is believed; anything above is a damaged file.
const MAX_CPU: usize = 65_535;

/// Reads `0-3,8,10-14:2` into ascending CPU numbers; `None` where the text is no such list.
pub(crate) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once(':') {
            // `a-b:used/group` counts `used` CPUs out of every `group`; `a-b:step` every step-th.
            Some((range, step)) => match step.split_once('/') {
                Some((used, group)) => (range, (number(used)?, number(group)?)),
                None => (range, (1, number(step)?)),
            },
            None => (part, (1, 1)),
        };
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (number(range)?, number(range)?),
        };
        if low > high || step.1 == 0 {
            return None;
        }
        cpus.extend((low..=high).filter(|cpu| (cpu - low) % step.1 < step.0));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Reads a mask of comma-separated 32-bit words, most significant first.
pub(crate) fn parse_mask(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for (place, word) in text.trim().split(',').rev().enumerate() {
        let word = word.trim();
        if word.is_empty() || word.len() > 16 || place > MAX_CPU / 32 {
            return None;
        }
        let bits = u64::from_str_radix(word, 16).ok()?;
        cpus.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| place * 32 + bit));
    }
    Some(cpus)
}

/// Writes ascending CPU numbers as `0-3,8`.
pub(crate) fn format_list(cpus: &[usize]) -> String {
    let mut out = String::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(cpu, expected)| *cpu == expected).count();
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&first.to_string());
        if run > 1 {
            out.push_str(&format!("-{}", rest[run - 1]));
        }
        rest = &rest[run..];
    }
    out
}

fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&cpu| cpu <= MAX_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("0-6:2"), Some(vec![0, 2, 4, 6]));
        assert_eq!(parse_list("0-7:2/4"), Some(vec![0, 1, 4, 5]));
        assert_eq!(parse_list(""), Some(vec![]));
        for bad in ["x", "3-1", "0-", "-1", "0-4294967295", "0-3:0", "99999999999999999999"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn masks_are_read() {
        assert_eq!(parse_mask("3"), Some(vec![0, 1]));
        assert_eq!(parse_mask("00000001,00000002"), Some(vec![1, 32]));
        assert_eq!(parse_mask("0f000"), Some(vec![12, 13, 14, 15]));
        assert_eq!(parse_mask("xyz"), None);
        assert_eq!(parse_mask(""), None);
    }

    #[test]
    fn lists_are_written() {
        assert_eq!(format_list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(format_list(&[5]), "5");
        assert_eq!(format_list(&[]), "");
    }
}
