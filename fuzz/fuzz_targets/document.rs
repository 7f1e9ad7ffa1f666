//! Fuzzes [`tollgate_fuzz::targets::document`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::targets::document(bytes));
