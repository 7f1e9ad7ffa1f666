//! Fuzzes [`tollgate_fuzz::targets::condition`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::targets::condition(bytes));
