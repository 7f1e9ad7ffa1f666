//! Fuzzes [`tollgate_fuzz::doors::resp`].

#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::doors::resp(bytes));
