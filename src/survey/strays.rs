//! Checkouts that no registration is joined with: whose row shows them, and whether one is an orphan.

use std::collections::HashMap;

use bstr::ByteSlice;

use crate::beneath::{self, Dir, Refused};
use crate::judge::reason::{Code, Reason};
use crate::survey::discover::Sighting;
use crate::survey::ground::Ground;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};
use crate::vantage::translate::Place;

/// Where the checkouts that are not joined are shown.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// In the row of the registration that they name.
    in_row: HashMap<(usize, usize), usize>,
    /// In rows of their own, with the clone that lists them.
    rows: Vec<(usize, usize)>,
    owners: HashMap<usize, Owner>,
}

/// The clone that lists a checkout.
#[derive(Clone, Debug)]
struct Owner {
    clone: usize,
    /// The clones that its `.git` file leads to; none if no translation knows where that is.
    leads: Vec<usize>,
}

impl Ground<'_> {
    fn found(&self) -> &Strays {
        self.strays.get_or_init(|| {
            let mut strays = Strays::default();
            let mut known = HashMap::new();
            let mut free: Vec<_> = self.free().collect();
            free.sort_by_key(|(_, checkout)| &checkout.path);
            for (w, checkout) in free {
                let Some(owner) = self.owner_of(checkout, &mut known) else { continue };
                let row = checkout.pointer.entry.as_ref().and_then(|(_, name)| {
                    let r = self.registered(owner.clone, name.as_bstr())?;
                    let at = (owner.clone, r);
                    let open =
                        !self.joins.joined.contains_key(&at) && !self.joins.ambiguous.contains_key(&at);
                    (open && !strays.in_row.contains_key(&at)).then_some(at)
                });
                match row {
                    Some(at) => {
                        strays.in_row.insert(at, w);
                    }
                    None => strays.rows.push((w, owner.clone)),
                }
                strays.owners.insert(w, owner);
            }
            strays
        })
    }

    /// A checkout that is not joined, and whose `.git` file names this registration; whether it certainly does.
    pub(super) fn stray_of(&self, c: usize, r: usize) -> Option<(usize, bool)> {
        let strays = self.found();
        let w = *strays.in_row.get(&(c, r))?;
        Some((w, strays.owners.get(&w).is_some_and(|owner| owner.leads == [c])))
    }

    /// Checkouts that no registration's row shows, each with the clone that lists it, in the order of their paths.
    pub fn strays(&self) -> &[(usize, usize)] {
        &self.found().rows
    }

    /// The clone that lists an unjoined checkout: the one that its file leads to, else the innermost one whose directory
    /// holds it, else the nearest beneath the same root. Where several could, the one that has the entry does.
    fn owner_of(&self, checkout: &Sighting, known: &mut HashMap<RecordedPath, Vec<usize>>) -> Option<Owner> {
        let (called, name) = checkout.pointer.entry.as_ref()?;
        let called = match called.is_absolute() || called.is_windows() {
            true => called.clone(),
            false => called.resolved_from(&RecordedPath::new(checkout.path.as_bstr()))?,
        };
        let leads = known.entry(called).or_insert_with_key(|called| self.led_to(called)).clone();
        let depth = |c: usize| self.sides[c].site.dir.components().count();
        let holds = |c: usize| checkout.path.is_beneath_or_at(&self.sides[c].site.dir);
        let first = |c: usize| std::cmp::Reverse(&self.sides[c].site.dir);
        let led = leads
            .iter()
            .copied()
            .max_by_key(|c| (self.registered(*c, name.as_bstr()).is_some(), holds(*c), depth(*c), first(*c)));
        let holding = || (0..self.sides.len()).filter(|c| holds(*c)).max_by_key(|c| (depth(*c), first(*c)));
        let nearest = || {
            let root = self.roots.iter().find(|root| checkout.path.is_beneath_or_at(root))?;
            let beneath = (0..self.sides.len()).filter(|c| self.sides[*c].site.dir.is_beneath_or_at(root));
            beneath.max_by_key(|c| (shared_depth(&self.sides[*c].site.dir, &checkout.path), first(*c)))
        };
        led.or_else(holding).or_else(nearest).map(|clone| Owner { clone, leads })
    }

    /// The clones whose common directory `called` is, by a translation that needs no guess.
    pub(super) fn led_to(&self, called: &RecordedPath) -> Vec<usize> {
        let leads = |c: &usize| {
            let site = self.sides[*c].site;
            self.sides[*c].translators.iter().any(|t| match t.place(called) {
                Place::Here(local) => {
                    local == *site.common_path() || self.object_at(&local) == Some(site.common_id)
                }
                _ => false,
            })
        };
        (0..self.sides.len()).filter(leads).collect()
    }

    /// Whether nothing answers for the unjoined checkout number `w`: its entry is gone, and no registration might be its
    /// own.
    ///
    /// # Errors
    /// Why it is no orphan, or why that can't be known.
    pub(super) fn is_orphan(&self, w: usize) -> Result<(), Reason> {
        let checkout = &self.checkouts[w];
        let Some(owner) = self.found().owners.get(&w) else {
            return Err(Reason::new(Code::Unreadable, "no clone is known that it could belong to"));
        };
        let Some((_, name)) = &checkout.pointer.entry else {
            return Err(Reason::new(Code::Unreadable, "its .git file names no entry"));
        };
        let shown = escape(name.as_bstr());
        // What leads nowhere may be of any clone.
        let all: Vec<usize> = (0..self.sides.len()).collect();
        let candidates = if owner.leads.is_empty() { &all } else { &owner.leads };
        let unread = candidates.iter().find_map(|c| Some((self.sides[*c].site, self.sides[*c].unread?)));
        if let Some((site, why)) = unread {
            let text = format!("the registrations of {} can't be read: {why}", site.dir);
            return Err(Reason::new(Code::Unreadable, text));
        }
        self.entry_is_gone(checkout)?;
        if self.registered(owner.clone, name.as_bstr()).is_some() {
            let why = format!("it names the entry {shown}, which answers for another directory");
            return Err(Reason::new(Code::LinksDisagree, why));
        }
        let idle = |c: &&usize| {
            let r = self.registered(**c, name.as_bstr());
            r.is_some_and(|r| !self.joins.joined.contains_key(&(**c, r)))
        };
        match candidates.iter().filter(idle).map(|c| &self.sides[*c].site.dir).min() {
            Some(dir) => Err(Reason::new(Code::Ambiguous, format!("it may be {shown} of {dir}"))),
            None => Ok(()),
        }
    }

    /// The entry that the `.git` file names is not there, as far as its path means something here. A path of another
    /// vantage has nothing in common with this one's but the root; where a part of it is here, it may be a path of this
    /// host, to a clone outside of the roots or on a disk that is not mounted.
    fn entry_is_gone(&self, checkout: &Sighting) -> Result<(), Reason> {
        let target = &checkout.pointer.target;
        if target.is_windows() {
            return Ok(());
        }
        let base = RecordedPath::new(checkout.path.as_bstr());
        let entry = target.resolved_from(&base).and_then(|t| LocalPath::new(t.as_bstr().to_path_lossy()));
        let Some(entry) = entry else {
            return Err(Reason::new(Code::Unreadable, format!("its .git file names {target}")));
        };
        match beneath::lstat(&entry) {
            Err(Refused::Absent) => {}
            Ok(_) => return Err(self.of_another_clone(&entry)),
            Err(refused) => return Err(Reason::new(Code::Unreadable, format!("{entry}: {refused}"))),
        }
        let common = entry.parent().and_then(|worktrees| worktrees.parent());
        let mut above = std::iter::successors(common, LocalPath::parent);
        let there = above.find(|path| beneath::lstat(path).is_ok());
        match there.filter(|path| path.parent().is_some() && is_empty(path)) {
            Some(there) => {
                let why = format!("it names {entry}, and {there} is empty; is a disk not mounted?");
                Err(Reason::new(Code::AbsenceUnproven, why))
            }
            None => Ok(()),
        }
    }

    /// The entry is there. If its clone is one of ours, the two do not name each other, else it is out of sight.
    fn of_another_clone(&self, entry: &LocalPath) -> Reason {
        let common = entry.parent().and_then(|p| p.parent()).unwrap_or_else(|| entry.clone());
        let id = self.object_at(&common);
        match self.sides.iter().any(|side| Some(side.site.common_id) == id) {
            true => Reason::new(Code::LinksDisagree, format!("{entry} answers for another directory")),
            false => {
                let add = common.parent().unwrap_or(common);
                Reason::new(
                    Code::OutsideRoot,
                    format!("it is a worktree of a clone there: add the root {add}"),
                )
            }
        }
    }
}

fn is_empty(path: &LocalPath) -> bool {
    Dir::open(path).is_ok_and(|dir| dir.names().is_ok_and(|names| names.is_empty()))
}

fn shared_depth(a: &LocalPath, b: &LocalPath) -> usize {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).count()
}
