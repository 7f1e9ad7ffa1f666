//! Fuzzes [`tollgate_fuzz::targets::imported`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::targets::imported(bytes));
