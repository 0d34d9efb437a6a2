//! Which clone an orphan certainly is of: its `.git` file names an entry that is gone, so that only one of the join's two
//! equations is left, and more is asked of that one.

use bstr::ByteSlice;

use crate::beneath::{self, Refused};
use crate::judge::reason::{Code, Reason};
use crate::survey::discover::{Sighting, is_git_dir};
use crate::survey::ground::Ground;
use crate::vantage::paths::{LocalPath, RecordedPath};
use crate::vantage::translate::{Place, Translator, infer};

/// Whose an orphan is.
#[derive(Debug)]
pub struct Origin {
    pub clone: usize,
    /// Translations that lead from what the orphan's `.git` file calls the clone to it, best first.
    pub rules: Vec<Translator>,
}

impl Ground<'_> {
    /// The clone that checkout number `w`, which is not joined, is of. `witness` says whether there is a snapshot of it
    /// for a clone, which no container can have written.
    ///
    /// # Errors
    /// It is no orphan, or it can't be proven whose it is.
    pub fn origin(&self, w: usize, witness: &dyn Fn(usize) -> bool) -> Result<Origin, Reason> {
        if let Some(why) = self.joins.ambiguous_checkouts.get(&w) {
            return Err(Reason::new(Code::Ambiguous, why.clone()));
        }
        self.is_orphan(w)?;
        let checkout = &self.checkouts[w];
        let Some((called, name)) = &checkout.pointer.entry else {
            return Err(Reason::new(Code::Unreadable, "its .git file names no entry"));
        };
        let called = match called.is_absolute() || called.is_windows() {
            true => Some(called.clone()),
            false => called.resolved_from(&RecordedPath::new(checkout.path.as_bstr())),
        };
        let called =
            called.ok_or_else(|| Reason::new(Code::Unreadable, "its .git file leads above the root"))?;
        let clone = self.proven(checkout, &called, witness)?;
        let side = &self.sides[clone];
        if let Some(reason) = self.out_of_bounds(clone, &checkout.path) {
            return Err(reason);
        }
        if self.registered(clone, name.as_bstr()).is_some() {
            let why = format!("the entry {name} of {} is there, for another directory", side.site.dir);
            return Err(Reason::new(Code::LinksDisagree, why));
        }
        self.is_no_other(clone, &called)?;
        let leads = |rule: &&Translator| match rule.place(&called) {
            Place::Here(local) => self.object_at(&local) == Some(side.site.common_id),
            _ => false,
        };
        let inferred = infer(&called, side.site.common_path(), &side.site.root).filter(|_| side.infers);
        let rules = side.translators.iter().chain(&inferred).filter(leads).cloned().collect();
        Ok(Origin { clone, rules })
    }

    /// By a translation that needs no guess, else by a snapshot, else by the tail of the clone's name.
    fn proven(
        &self,
        checkout: &Sighting,
        called: &RecordedPath,
        witness: &dyn Fn(usize) -> bool,
    ) -> Result<usize, Reason> {
        let led = self.led_to(called);
        let witnessed = || (0..self.sides.len()).filter(|c| witness(*c)).collect::<Vec<_>>();
        let by_tail =
            || (0..self.sides.len()).filter(|c| self.has_tail(*c, called, checkout)).collect::<Vec<_>>();
        let candidates = [led, witnessed(), by_tail()].into_iter().find(|all| !all.is_empty());
        let all = candidates.unwrap_or_default();
        // Where several clones answer to the name, a snapshot tells them apart.
        let told: Vec<usize> = all.iter().copied().filter(|c| witness(*c)).collect();
        match (all.as_slice(), told.as_slice()) {
            ([one], _) | (_, [one]) => Ok(*one),
            ([], _) => Err(Reason::new(
                Code::OutsideVantage,
                format!("nothing tells which clone '{called}' is; say it with --map CONTAINER=HOST"),
            )),
            _ => {
                let names: Vec<String> = all.iter().map(|c| self.sides[*c].site.dir.to_string()).collect();
                let why = format!(
                    "'{called}' may be any of {}; say it with --map CONTAINER=HOST",
                    names.join(", ")
                );
                Err(Reason::new(Code::Ambiguous, why))
            }
        }
    }

    /// `called` ends in the clone's own name, and what that says of its parents covers the checkout.
    fn has_tail(&self, c: usize, called: &RecordedPath, checkout: &Sighting) -> bool {
        let side = &self.sides[c];
        let (site, common) = (side.site, side.site.common_path());
        let Some(rule) = infer(called, common, &site.root).filter(|_| side.infers) else { return false };
        let Some(called) = called.normalized() else { return false };
        let (theirs, ours): (Vec<_>, Vec<_>) = (called.components().collect(), common.components().collect());
        let shared = theirs.iter().rev().zip(ours.iter().rev()).take_while(|(a, b)| a == b).count();
        let name = (ours.len() + 1).checked_sub(site.dir.components().count());
        name.is_some_and(|name| shared >= name) && rule.name_of(&checkout.path).is_some()
    }

    /// As a path of this host, `called` is no other clone.
    fn is_no_other(&self, clone: usize, called: &RecordedPath) -> Result<(), Reason> {
        let Some(local) = LocalPath::new(called.as_bstr().to_path_lossy()).filter(|_| !called.is_windows())
        else {
            return Ok(());
        };
        match beneath::lstat(&local) {
            Err(Refused::Absent | Refused::NotPlain) => Ok(()),
            Ok(meta) if meta.id == self.sides[clone].site.common_id => Ok(()),
            Ok(_) if !is_git_dir(local.as_path()) => Ok(()),
            Ok(_) => {
                let why = format!("its .git file names another clone of this host, {local}");
                Err(Reason::new(Code::LinksDisagree, why))
            }
            Err(refused) => Err(Reason::new(Code::Unreadable, format!("{local}: {refused}"))),
        }
    }
}
