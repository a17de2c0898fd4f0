//! Throws data out of every cache, for cold measurements.

/// Bytes between two flushes: no CPU has shorter lines.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 64;

/// Whether [`flush`] does what it says on this CPU.
pub fn available() -> bool {
    cfg!(target_arch = "x86_64")
}

/// Flushes every line of a slice from all caches; the contents stay as they are.
///
/// Does nothing where [`available`] says no.
pub fn flush<T>(data: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        let bytes = size_of_val(data);
        let start = data.as_ptr().cast::<u8>();
        for at in (0..bytes).step_by(STEP).chain(bytes.checked_sub(1)) {
            // SAFETY: `at` lies inside the slice, so the line is mapped; flushing writes it back and
            // changes no byte. clflush is part of SSE2, which every x86_64 CPU has.
            unsafe { _mm_clflush(start.wrapping_add(at)) };
        }
        // SAFETY: a fence touches no memory; part of SSE2.
        unsafe { _mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_survive() {
        let data: Vec<u64> = (0..1000).collect();
        flush(&data);
        flush::<u64>(&[]);
        flush(&data[3..4]);
        assert!(data.iter().enumerate().all(|(i, &x)| x == i as u64));
    }
}
