//! Landlock: what a sweeping thread, and every thread that it starts, may still change.
//!
//! Reading stays free: packs may be borrowed from anywhere. The domain holds for the thread that calls and those it
//! starts afterwards, so each clone is swept on a thread of its own and starts its workers itself.

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus,
};

use crate::beneath::Dir;
use crate::vantage::paths::LocalPath;

/// What the kernel made of it. It is reported and stops nothing: the handles of the sweep guard without it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Changes outside are refused by the kernel.
    Active,
    /// The kernel is older than some of the rights: these are not refused.
    Partial,
    /// There is none, and why.
    Inactive(String),
}

/// Confines the changes of this thread to what lies beneath `held` and `parents`; one of the latter that can't be opened
/// can't be worked in either.
pub fn confine(held: &[&Dir], parents: &[LocalPath]) -> Confinement {
    // ABI 3 names every access that changes a file system, `refer` and `truncate` too; later ones add devices and nets.
    let changing = AccessFs::from_write(ABI::V3);
    match restrict(held, parents, changing) {
        Ok(status) => match status.ruleset {
            RulesetStatus::FullyEnforced => Confinement::Active,
            RulesetStatus::PartiallyEnforced => Confinement::Partial,
            RulesetStatus::NotEnforced => Confinement::Inactive("this kernel has no Landlock".into()),
        },
        Err(error) => Confinement::Inactive(crate::git::open::chain(&error)),
    }
}

fn restrict(
    held: &[&Dir],
    parents: &[LocalPath],
    changing: BitFlags<AccessFs>,
) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        // Where the kernel can't allow it, it refuses every move from one directory to another, ours too.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(changing)?
        .create()?;
    let held = held.iter().map(|dir| Ok(PathBeneath::new(*dir, changing)));
    let parents = parents.iter().filter_map(|path| Dir::open(path).ok());
    ruleset
        .add_rules(held.collect::<Vec<Result<_, RulesetError>>>())?
        .add_rules(parents.map(|dir| Ok::<_, RulesetError>(PathBeneath::new(dir, changing))))?
        .restrict_self()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::act;

    #[test]
    fn outside_nothing_can_be_changed_and_workers_inherit() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        for name in ["in", "out"] {
            std::fs::create_dir(path.join(name)).unwrap();
            std::fs::write(path.join(name).join("f"), "x").unwrap();
        }
        let open = |name: &str| Dir::open(&LocalPath::new(path.join(name)).unwrap()).unwrap();
        let (inside, outside) = (open("in"), open("out"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if confine(&[&inside], &[]) != Confinement::Active {
                    return;
                }
                std::thread::scope(|workers| {
                    workers.spawn(|| {
                        assert_eq!(act::unlink(&outside, b"f"), Err(rustix::io::Errno::ACCESS));
                        assert!(act::mkdir(&outside, b"d", 0o700).is_err());
                        assert!(std::fs::write(path.join("out/f"), "y").is_err());
                        assert_eq!(std::fs::read(path.join("out/f")).unwrap(), b"x");
                        act::unlink(&inside, b"f").unwrap();
                    });
                });
            });
        });
        assert!(path.join("out/f").exists());
    }
}
