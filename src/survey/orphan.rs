use crate::beneath::Dir;
use crate::git::open::Unreadable;
use crate::judge::facts::OrphanMatch;
use crate::judge::tree_facts::TreeFacts;
use crate::survey::walk::Options;
pub fn match_orphan(
    _: &Dir,
    _: &gix::Repository,
    _: &Options<'_>,
) -> Result<(OrphanMatch, TreeFacts), Unreadable> {
    Err(Unreadable("not looked at".into()))
}
