//! Tuning profiles as text.
//!
//! Oracle: what is read, written and read again is the same, entries that nobody can read included; every
//! entry and every value is either used or named as left out, one by one; what is used makes sense.

use restride::Tuning;
use restride::copy::tuning::{ELEMENT_SIZES, Knob, Origin, Value};
use restride::profile::{Entry, Profile};
use std::path::Path;

fn base() -> Tuning {
    Tuning::for_caches(48 << 10, 2 << 20, 0)
}

/// Runs one input; says whether it is worth keeping.
pub fn check(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let parse = |text: &str| Profile::parse(text, Path::new("input"));
    let profile = match parse(text) {
        Ok(profile) => profile,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("input is no profile: it "), "{message}");
            return true;
        }
    };
    let written = profile.text();
    let back = parse(&written).unwrap();
    assert_eq!(back, profile);
    assert_eq!(back.text(), written);

    let entries: Vec<Result<Entry, String>> = profile.entries().collect();
    let readable: Vec<&Entry> = entries.iter().flatten().collect();
    let Some(key) = readable.first().map(|entry| &entry.key) else { return true };
    let loaded = profile.over(base(), key);
    // What is left out is named in order, and the rest is used.
    let mut ignored = loaded.ignored.iter();
    let (mut values, mut tuning) = (0, base());
    for (place, entry) in entries.iter().enumerate() {
        let Ok(entry) = entry else {
            assert_eq!(ignored.next().unwrap().entry, format!("entry {}", place + 1));
            continue;
        };
        if entry.key != *key {
            let left_out = ignored.next().unwrap();
            assert!(left_out.entry == entry.key.to_string() && !left_out.reason.is_empty());
            continue;
        }
        for winner in &entry.winners {
            let knob = Knob::from_name(&winner.knob).filter(|knob| {
                let sized = winner.element_bytes.is_none_or(|n| knob.by_size() && ELEMENT_SIZES.contains(&n));
                sized && knob.range().contains(&winner.value)
            });
            match knob {
                Some(knob) => {
                    tuning
                        .set(knob, winner.element_bytes, Value::new(winner.value, Origin::Profile))
                        .unwrap();
                    values += 1;
                }
                None => assert_eq!(ignored.next().unwrap().entry, entry.key.to_string()),
            }
        }
    }
    assert!(ignored.next().is_none());
    assert_eq!((loaded.values, loaded.tuning), (values, tuning));

    // Imported: every entry is taken or named, and of each key the last one that was taken stays.
    let mut imported = Profile::default();
    let merged = imported.merge(&profile);
    assert_eq!(merged.taken.len() + merged.left_out.len(), entries.len());
    assert!(merged.left_out.iter().chain(&merged.faults).all(|ignored| !ignored.reason.is_empty()));
    let kept: Vec<Entry> = imported.entries().map(Result::unwrap).collect();
    for taken in &merged.taken {
        assert_eq!(kept.iter().filter(|entry| entry.key == *taken).count(), 1);
    }
    assert!(kept.iter().all(|entry| merged.taken.contains(&entry.key) && readable.contains(&entry)));
    true
}
