//! What fuzzing has kept, tried once more, and with a little of each changed.

use std::path::PathBuf;

/// A test for each target, and their names.
macro_rules! replay {
    ($($target:ident),* $(,)?) => {
        const TARGETS: &[&str] = &[$(stringify!($target)),*];
        $(#[test]
        fn $target() {
            replay(stringify!($target), super::$target);
        })*
    };
}

replay!(
    clone_config,
    config,
    dot_git,
    gitdir,
    head,
    index,
    inferred,
    journal,
    label,
    lfs,
    marker,
    mountinfo,
    own_config,
    packed_refs,
    reflog,
    split_index,
    trash,
);

fn fuzz(path: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fuzz", path].iter().collect()
}

fn files(dir: PathBuf) -> Vec<PathBuf> {
    let files = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn replay(target: &str, holds: fn(&[u8])) {
    for seed in files(fuzz("seeds").join(target)) {
        let bytes = std::fs::read(&seed).unwrap();
        // What is printed is shown only if it holds no more.
        println!("{}", seed.display());
        holds(&bytes);
        for at in 0..bytes.len().min(256) {
            println!("cut or changed at {at}");
            holds(&bytes[..at]);
            holds(&bytes[at..]);
            for flip in [1, b' ', 0x80] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                holds(&bytes);
            }
        }
    }
}

#[test]
fn each_target_is_replayed() {
    for dir in ["fuzz_targets", "seeds"] {
        let names: Vec<_> = files(fuzz(dir)).iter().map(|p| p.file_stem().unwrap().to_owned()).collect();
        assert_eq!(names, TARGETS, "{dir}");
    }
}
