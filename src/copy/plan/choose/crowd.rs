//! Which rows crowd each other out of the first-level cache.

use super::LINE;

/// Lines that a set of the first-level cache holds on the machines that matter; there are 64 sets.
pub(super) const WAYS: u8 = 12;

/// Whether a line's length each of so many rows of this pitch come to more than `most` lines in a set of the first-level
/// cache.
pub(super) fn crowded(pitch: isize, rows: usize, most: u8) -> bool {
    let mut sets = [0u8; 64];
    let mut at = 0usize;
    (0..rows).any(|_| {
        let mut full = |line: usize| {
            let set = &mut sets[line % 64];
            *set += 1;
            *set > most
        };
        let (line, over) = (at / LINE, !at.is_multiple_of(LINE));
        at = at.wrapping_add(pitch.unsigned_abs());
        full(line) || over && full(line + 1)
    })
}

/// How many squares of `edge` rows of this pitch are worth taking abreast: as many as leave their lines side by side in
/// the first-level cache, where the next square along the columns writes on, and as many of the source.
pub(super) fn abreast(pitch: isize, rows: usize, edge: usize) -> usize {
    // Of 8 bytes, eight squares were slower than four (figures in DESIGN 11).
    let most = if edge == 8 { 4 } else { 8 };
    let lines = if pitch % LINE as isize == 0 { WAYS / 3 * 2 } else { WAYS / 2 };
    let fit = |&n: &usize| n * edge <= rows && !crowded(pitch, n * edge, lines);
    [most, most / 2, 2].into_iter().find(fit).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_go_abreast_where_their_lines_find_room() {
        assert_eq!(abreast(4000, 1000, 16), 8);
        assert_eq!(abreast(5784, 723, 8), 4);
        assert_eq!(abreast(1024, 256, 16), 2, "four sets for 32 rows");
        assert_eq!(abreast(2048, 512, 16), 1, "two sets");
        assert_eq!(abreast(4096, 1024, 16), 1, "one set");
        assert_eq!(abreast(-4088, 511, 8), 1, "lines that straddle count twice");
        assert_eq!(abreast(4000, 31, 16), 1, "there are no two squares");
    }
}
