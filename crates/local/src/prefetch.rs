//! Asking the processor for a cache line ahead of need.

/// Starts to load the cache line of `target` and does not wait for it.
#[inline(always)]
pub(crate) fn prefetch<T>(target: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::from_ref(target).cast::<i8>();
        // SAFETY: a prefetch is a hint. It reads nothing the program can see, never faults, and
        // SSE, which brings the instruction, is part of every x86-64 processor.
        #[expect(unsafe_code, reason = "batches reach memory in parallel only by prefetching")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = target;
}
