#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| treesweep::fuzzing::dot_git(bytes));
