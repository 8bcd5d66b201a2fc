//! Fuzz target; what it checks is in `namehop-fuzz-checks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| namehop_fuzz_checks::run("p4runtime_port", bytes));
