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
    /// A little more than the lines need, so that they can begin where a huge page does.
    #[cfg(not(loom))]
    map: memmap2::MmapMut,
    /// Where in the map the lines begin, in bytes.
    #[cfg(not(loom))]
    begin: usize,
    #[cfg(loom)]
    boxed: Box<[Line]>,
    #[cfg(not(loom))]
    len: usize,
}

impl Lines {
    #[cfg(not(loom))]
    pub(crate) fn try_new(len: usize) -> std::io::Result<Self> {
        let bytes = len.checked_mul(size_of::<Line>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let spare = if bytes >= Self::HUGE_PAGE { Self::HUGE_PAGE } else { 0 };
        let room = bytes.checked_add(spare).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let map = memmap2::MmapMut::map_anon(room)?;
        // A page that nobody touches takes no memory, so what is spare costs none.
        let begin = match spare {
            0 => 0,
            _ => map.as_ptr().addr().wrapping_neg() % Self::HUGE_PAGE,
        };
        #[cfg(target_os = "linux")]
        if bytes >= Self::HUGE_PAGE {
            // Wishes: a system without huge pages serves small ones, and an old one brings them
            // in when they are used.
            let _ = map.advise_range(memmap2::Advice::HugePage, begin, bytes);
            if bytes >= Self::LARGE {
                let _ = map.advise_range(memmap2::Advice::PopulateWrite, begin, bytes);
            }
        }
        Ok(Self { map, begin, len })
    }

    #[cfg(loom)]
    pub(crate) fn try_new(len: usize) -> std::io::Result<Self> {
        Ok(Self { boxed: (0..len).map(|_| Line::default()).collect() })
    }

    #[cfg(not(loom))]
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
        let start = self.map.as_ptr().wrapping_add(self.begin).cast::<Line>();
        // SAFETY: from `begin` on the map is at least `len` lines long; it begins at a page, as
        // does `begin`, and so at a multiple of 64, and lives as long as `self`. It was zeroed by the system, and a line of zeroes is a valid
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
