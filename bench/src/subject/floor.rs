//! What memory allows: read, change and write back one word of a random cache line, prefetched in
//! batches. A table that keeps its states in memory cannot be faster than this.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::error::BenchError;
use crate::keys;

/// As many bytes as the table it stands in for, on pages of the same kind.
pub(crate) struct Floor {
    map: MmapMut,
    /// Where a huge page begins, as our table does.
    begin: usize,
    bytes: usize,
}

impl Floor {
    /// A floor over `bytes` bytes of memory, all of it touched.
    pub(crate) fn new(bytes: usize) -> Result<Self, BenchError> {
        let bytes = (bytes / LINE).max(1) * LINE;
        let map = MmapMut::map_anon(bytes + HUGE_PAGE).map_err(BenchError::Memory)?;
        let begin = map.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
        let mut floor = Self { map, begin, bytes };
        // Our table wishes for huge pages, which make random access cheaper, so the floor must
        // have them too. Without them, both sides do without.
        #[cfg(target_os = "linux")]
        let _ = floor.map.advise_range(memmap2::Advice::HugePage, begin, bytes);
        floor.lines_mut().as_flattened_mut().fill(1);
        Ok(floor)
    }

    fn lines_mut(&mut self) -> &mut [[u8; LINE]] {
        self.map[self.begin..][..self.bytes].as_chunks_mut::<LINE>().0
    }

    /// Visits the line of every key, a batch at a time: prefetch all lines, then change them.
    #[inline]
    pub(crate) fn visit<V: Folded>(&mut self, visits: &[V]) -> u64 {
        self.visit_with(visits, add_one)
    }

    /// The same with atomic changes, which is what a table shared between threads can reach.
    #[inline]
    pub(crate) fn visit_atomically<V: Folded>(&mut self, visits: &[V]) -> u64 {
        self.visit_with(visits, add_one_atomically)
    }

    #[inline]
    fn visit_with<V: Folded>(
        &mut self,
        visits: &[V],
        change: impl Fn(&mut [u8; LINE]) -> u64,
    ) -> u64 {
        let lines = self.lines_mut();
        let mut sum = 0_u64;
        let mut places = [0_usize; BATCH];
        for batch in visits.chunks(BATCH) {
            for (place, key) in places.iter_mut().zip(batch) {
                let spread = u128::from(keys::mix(key.folded()));
                *place = ((spread * lines.len() as u128) >> 64) as usize;
                prefetch(&lines[*place]);
            }
            for &place in &places[..batch.len()] {
                sum = sum.wrapping_add(change(&mut lines[place]));
            }
        }
        black_box(sum);
        visits.len() as u64
    }
}

/// A key as one word. For strings this reads all bytes, so that a floor under string keys pays
/// for fetching them from memory as everyone must.
pub(crate) trait Folded {
    fn folded(&self) -> u64;
}

impl Folded for u64 {
    #[inline]
    fn folded(&self) -> u64 {
        *self
    }
}

impl Folded for &String {
    #[inline]
    fn folded(&self) -> u64 {
        let (words, _) = self.as_bytes().as_chunks::<8>();
        words.iter().fold(0, |folded, word| folded.rotate_left(17) ^ u64::from_le_bytes(*word))
    }
}

/// Keys per batch, for us and for the floor.
pub(crate) const BATCH: usize = 32;

/// Bytes of a cache line.
const LINE: usize = 64;

const HUGE_PAGE: usize = 2 << 20;

#[inline]
fn add_one(line: &mut [u8; LINE]) -> u64 {
    let (words, _) = line.as_chunks_mut::<8>();
    let value = u64::from_le_bytes(words[0]).wrapping_add(1);
    words[0] = value.to_le_bytes();
    value
}

#[inline]
fn add_one_atomically(line: &mut [u8; LINE]) -> u64 {
    // SAFETY: lines begin at multiples of 64 bytes, because the map begins at a page, so the
    // pointer is aligned for a word and valid for eight bytes; the borrow is exclusive, so nobody
    // else accesses them meanwhile.
    #[expect(unsafe_code, reason = "the standard library has no safe atomic view of bytes yet")]
    let word = unsafe { AtomicU64::from_ptr(line.as_mut_ptr().cast()) };
    word.fetch_add(1, Ordering::Relaxed)
}

#[inline]
fn prefetch(line: &[u8; LINE]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that changes no state and cannot fault, and the pointer
        // comes from a live reference.
        #[expect(unsafe_code, reason = "the standard library offers no safe prefetch")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(floor: &mut Floor) -> u64 {
        floor.lines_mut().iter().map(|line| u64::from(line[0])).sum()
    }

    #[test]
    fn covers_the_given_bytes() {
        assert_eq!(Floor::new(64 * 1000).unwrap().lines_mut().len(), 1000);
        assert_eq!(Floor::new(1).unwrap().lines_mut().len(), 1);
    }

    #[test]
    fn every_visit_changes_one_word() {
        let mut floor = Floor::new(64 * 100).unwrap();
        let before = sum(&mut floor);
        floor.visit(&keys::numbers(77));
        floor.visit_atomically(&keys::numbers(11));
        assert_eq!(sum(&mut floor) - before, 88);
    }
}
