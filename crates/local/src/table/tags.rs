//! The tags of a line, compared at once.

use crate::sync::{AtomicU32, Ordering};
use crate::table::SLOTS;

/// A bit for each slot that carries the tag: of four slots in one instruction, and of one.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline(always)]
pub(super) fn matches(tags: &[AtomicU32; SLOTS], tag: u32) -> u32 {
    let [four @ .., last] = tags;
    let found: u32;
    // SAFETY: `four` is 16 bytes of memory that is alive, and they are only read. Others may write
    // to them at the same time, each tag with an atomic store: the processor reads every aligned
    // word of a vector as a whole, so this is four relaxed loads and what follows from their
    // values. SSE2 is part of every x86-64 processor.
    #[expect(unsafe_code, reason = "a tenth off a decision on a key that is not in a cache")]
    unsafe {
        std::arch::asm!(
            "movd {wanted}, {tag:e}",
            "pshufd {wanted}, {wanted}, 0",
            "movdqu {tags}, [{four}]",
            "pcmpeqd {tags}, {wanted}",
            "movmskps {found:e}, {tags}",
            tag = in(reg) tag,
            four = in(reg) four,
            wanted = out(xmm_reg) _,
            tags = out(xmm_reg) _,
            found = lateout(reg) found,
            options(readonly, nostack, preserves_flags),
        );
    }
    // What the compiler cannot know: there are four bits at most.
    found & 0xF | u32::from(last.load(Ordering::Relaxed) == tag) << 4
}

/// A bit for each slot that carries the tag.
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
pub(super) fn matches(tags: &[AtomicU32; SLOTS], tag: u32) -> u32 {
    let same = |slot: usize| tags[slot].load(Ordering::Relaxed) == tag;
    (0..SLOTS).map(|slot| u32::from(same(slot)) << slot).sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_compared() {
        let tags: [AtomicU32; SLOTS] = [3, 0xFFFF_FFFF, 5, 3, 7].map(AtomicU32::new);
        let found = [3, 0xFFFF_FFFF, 5, 7, 9].map(|tag| matches(&tags, tag));
        assert_eq!(found, [0b0_1001, 0b0_0010, 0b0_0100, 0b1_0000, 0]);
    }
}
