//! Fuzzes [`tollgate_fuzz::doors::quotas`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::doors::quotas(bytes));
