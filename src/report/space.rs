//! What is free now, and what holds the rest.

use super::View;
use super::text::{Field, count, place, size};
use crate::plan::{HolderRow, SpaceRow};

/// So many of those that hold space are shown; a program gets all.
const SHOWN: usize = 10;

/// One line for each file system.
pub fn free(rows: &[SpaceRow], view: &View) -> String {
    rows.iter().map(|row| line(row, view)).collect()
}

fn line(row: &SpaceRow, view: &View) -> String {
    let place = place(&row.path.raw().unwrap_or_default(), view.home.as_deref());
    let wanted = row.wanted.map(|wanted| format!(", {} wanted", size(wanted))).unwrap_or_default();
    let (before, after) = (size(row.available_before), size(row.available_after));
    format!("Free on the file system of {place}: {before} before, {} now{wanted}.\n", view.style.bold(after))
}

/// What holds the space that is lacking on these file systems.
pub fn held(holders: &[HolderRow], systems: &[SpaceRow]) -> String {
    if holders.is_empty() {
        return "No worktree that is left there takes any space: it is held by something else.\n".to_owned();
    }
    let mut out = "These hold space, and may not go by themselves (`--explain NAME` says why):\n".to_owned();
    let shown = &holders[..holders.len().min(SHOWN)];
    let widest =
        |text: fn(&HolderRow) -> String| shown.iter().map(|h| text(h).chars().count()).max().unwrap_or(0);
    let (width, room) = (widest(|h| h.name.shown()), widest(weight));
    for holder in shown {
        let why = holder.code.map(|c| c.as_str()).or(holder.class.map(|c| c.as_str())).unwrap_or_default();
        let (word, name) = (super::plan::verdict_word(holder.verdict), holder.name.shown());
        let line = format!("  {word:7}  {name:width$}  {:>room$}  {why}", weight(holder));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let more = holders.len() - shown.len();
    if more > 0 {
        let bytes: u64 = holders[SHOWN..].iter().map(|h| h.bytes).sum();
        out.push_str(&format!("  and {} more with {}\n", count(more as u64, "worktree"), size(bytes)));
    }
    let used: u64 =
        systems.iter().filter(|s| !s.is_enough()).map(|s| s.size.saturating_sub(s.available_after)).sum();
    let all = size(holders.iter().map(|h| h.bytes).sum());
    out.push_str(&format!(
        "They take {all} of the {} that are used there; the rest is something else.\n",
        size(used)
    ));
    out
}

fn weight(holder: &HolderRow) -> String {
    let at_least = if holder.at_least { "at least " } else { "" };
    format!("{at_least}{}", size(holder.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::reason::Code;
    use crate::plan::{Class, LocalPlace, Name, VerdictKind};
    use crate::report::sample::view;
    use bstr::ByteSlice;

    fn holder(name: &str, verdict: VerdictKind, code: Option<Code>, bytes: u64) -> HolderRow {
        HolderRow {
            name: Name::of(Some(name.into())),
            path: LocalPlace::of(Some(format!("/src/{name}").as_bytes().as_bstr())),
            verdict,
            class: (verdict == VerdictKind::Offer).then_some(Class::Unowned),
            code,
            bytes,
            at_least: name == "locked",
        }
    }

    #[test]
    fn what_is_free_and_what_holds_the_rest() {
        let space = SpaceRow {
            path: LocalPlace::of(Some(b"/home/me/src".as_bstr())),
            size: 100_000_000_000,
            available_before: 10_200_000_000,
            available_after: 13_100_000_000,
            wanted: Some(20_000_000_000),
        };
        let mut holders = vec![
            holder("cart", VerdictKind::Keep, Some(Code::Dirty), 3_200_000_000),
            holder("locked", VerdictKind::Keep, Some(Code::Unreadable), 1_100_000_000),
            holder("spike", VerdictKind::Offer, None, 1_000_000),
        ];
        let text =
            free(std::slice::from_ref(&space), &view(None)) + &held(&holders, std::slice::from_ref(&space));
        insta::assert_snapshot!(text);
        holders.resize(12, holders[2].clone());
        let many = held(&holders, std::slice::from_ref(&space));
        assert!(
            many.contains("  and 2 worktrees more with 2 MB\nThey take 4.3 GB of the 86.9 GB that"),
            "{many}"
        );
        assert!(held(&[], &[]).contains("something else"));
        let plain = SpaceRow { wanted: None, ..space };
        assert!(!free(&[plain], &view(None)).contains("wanted"));
    }
}
