#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| treesweep::fuzzing::inferred(bytes));
