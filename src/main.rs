//! Parse, run, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    treesweep::cli::run::main(std::env::args_os())
}
