//! The limit that a plan is compared with: as many threads as are asked for `lstat` every name below a directory, and
//! nothing else. Prints how many there are.
//!
//! usage: `lstat_walk THREADS DIR`

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::Scope;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut line = std::env::args_os().skip(1);
    let (Some(threads), Some(dir)) = (line.next(), line.next()) else {
        return Err("usage: lstat_walk THREADS DIR".into());
    };
    let threads: usize = threads.to_string_lossy().parse()?;
    let seen = AtomicU64::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| rayon::scope(|scope| visit(dir.into(), &seen, scope)));
    println!("{}", seen.into_inner());
    Ok(())
}

/// Looks at every name in `dir`, and has its directories visited by whoever is free.
fn visit<'s>(dir: PathBuf, seen: &'s AtomicU64, scope: &Scope<'s>) {
    if let Err(error) = look(&dir, seen, scope) {
        eprintln!("{}: {error}", dir.display());
    }
}

fn look<'s>(dir: &Path, seen: &'s AtomicU64, scope: &Scope<'s>) -> std::io::Result<()> {
    let mut count = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        // Relative to the directory's handle, links not followed.
        let meta = entry.metadata()?;
        count += 1;
        if meta.is_dir() {
            let below = entry.path();
            scope.spawn(move |scope| visit(below, seen, scope));
        }
    }
    seen.fetch_add(count, Ordering::Relaxed);
    Ok(())
}
