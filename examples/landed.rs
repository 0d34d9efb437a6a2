//! What could go beneath some directories, with treesweep as a library.
//!
//! ```sh
//! cargo run --example landed -- ~/src            # list it
//! cargo run --example landed -- --sweep ~/src    # and remove what is enrolled
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use treesweep::library::{Error, Silent, Treesweep};
use treesweep::plan::{Name, VerdictKind};
use treesweep::vantage::paths::escape;

fn main() -> ExitCode {
    let (flags, roots): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    match run(flags.iter().any(|flag| flag == "--sweep"), roots.into_iter().map(PathBuf::from).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A name may have any bytes.
fn shown(name: &Name) -> String {
    escape(name.text.as_deref().unwrap_or("?").as_bytes())
}

fn run(sweep: bool, roots: Vec<PathBuf>) -> Result<(), Error> {
    let treesweep = Treesweep::beneath(&roots)?;
    let survey = treesweep.survey(&Silent)?;
    for clone in &survey.plan().clones {
        for row in &clone.worktrees {
            let first = row.reasons.first().map_or("", |reason| reason.code.as_str());
            println!("{:8} {:20} {first}", format!("{:?}", row.verdict), shown(&row.name));
        }
    }
    let going = |row: &&treesweep::plan::Row| row.verdict == VerdictKind::Reclaim;
    let count = survey.plan().clones.iter().flat_map(|clone| &clone.worktrees).filter(going).count();
    println!("{count} could be reclaimed");
    if sweep {
        for outcome in survey.sweep(&Silent)?.outcomes {
            println!("{:?} {}", outcome.result, shown(&outcome.name));
        }
    }
    Ok(())
}
