//! The memory of a table: zeroed and bounded, and if it is large, all there from the start.

use std::ops::Deref;

use crate::table::Line;

/// A fixed number of lines, all zero at first.
///
/// They are mapped and not allocated, so that the system can back them with huge pages, without
/// which a table of ten million keys misses the processor's translation buffer on nearly every
/// decision. A large table is brought in whole at the start, at about half a second per gigabyte:
/// otherwise the first decision on every page waits for the system to clear it. A smaller one has
/// few pages, and takes no memory before somebody needs it.
pub(crate) struct Lines {
    #[cfg(not(loom))]
    map: memmap2::MmapMut,
    #[cfg(loom)]
    boxed: Box<[Line]>,
    #[cfg(not(loom))]
    len: usize,
}

impl Lines {
    #[cfg(not(loom))]
    pub(crate) fn try_new(len: usize) -> std::io::Result<Self> {
        let bytes = len.checked_mul(size_of::<Line>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let map = memmap2::MmapMut::map_anon(bytes)?;
        #[cfg(target_os = "linux")]
        if bytes >= Self::HUGE_PAGE {
            // Wishes: a system without huge pages serves small ones, and an old one brings them
            // in when they are used.
            let _ = map.advise(memmap2::Advice::HugePage);
            if bytes >= Self::LARGE {
                let _ = map.advise(memmap2::Advice::PopulateWrite);
            }
        }
        Ok(Self { map, len })
    }

    #[cfg(loom)]
    pub(crate) fn try_new(len: usize) -> std::io::Result<Self> {
        Ok(Self { boxed: (0..len).map(|_| Line::default()).collect() })
    }

    #[cfg(all(target_os = "linux", not(loom)))]
    const HUGE_PAGE: usize = 2 << 20;

    /// Over two million keys.
    #[cfg(all(target_os = "linux", not(loom)))]
    const LARGE: usize = 64 << 20;
}

impl Deref for Lines {
    type Target = [Line];

    #[cfg(not(loom))]
    #[inline]
    fn deref(&self) -> &[Line] {
        let start = self.map.as_ptr().cast::<Line>();
        // SAFETY: the map is `len` lines long, begins at a page and so at a multiple of 64, and
        // lives as long as `self`. It was zeroed by the system, and a line of zeroes is a valid
        // line. It is changed only through the atomics of `Line`, which a shared reference
        // allows: `map` is private to this type, which never takes a slice of its bytes.
        #[expect(unsafe_code, reason = "huge pages, and no second copy of the table at start")]
        unsafe {
            std::slice::from_raw_parts(start, self.len)
        }
    }

    #[cfg(loom)]
    fn deref(&self) -> &[Line] {
        &self.boxed
    }
}
