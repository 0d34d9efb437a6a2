//! The deletion engine alone, with every guard that it has in a removal, for `scripts/bench` to time: no plan, no journal.
//!
//! usage: `remove_tree DIR [THREADS]`; without a number as many threads as a removal has. DIR has to hold a file `.git`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use treesweep::beneath::Dir;
use treesweep::stop::Stop;
use treesweep::sweep::remove::{Order, THREADS_PER_CORE, remove_tree};
use treesweep::vantage::paths::LocalPath;

/// Nobody looks on.
struct Silent;

impl treesweep::sweep::outcome::Progress for Silent {
    fn freed(&self, _: u64) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut line = std::env::args_os().skip(1);
    let Some(dir) = line.next() else { return Err("usage: remove_tree DIR [THREADS]".into()) };
    let jobs = match line.next() {
        Some(threads) => threads.to_string_lossy().parse()?,
        None => {
            std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).saturating_mul(THREADS_PER_CORE)
        }
    };
    let path = LocalPath::new(PathBuf::from(dir).canonicalize()?).ok_or("no path")?;
    let parent = Dir::open(&path.parent().ok_or("a root")?)?;
    let name = path.file_name().ok_or("no name")?;
    let order = Order {
        parent: &parent,
        name,
        id: Dir::open(&path)?.own_meta()?.id,
        last: b".git",
        jobs,
        stop: &Stop::never(),
        progress: &Silent,
    };
    let (removed, end) = remove_tree(&order);
    end?;
    println!("{} files, {} directories", removed.files, removed.directories);
    Ok(())
}
