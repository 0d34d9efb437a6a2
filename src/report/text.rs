//! The words and numbers that all renderings share.

use std::path::Path;

use base64::Engine as _;
use comfy_table::{ContentArrangement, Table, presets};
use humansize::{DECIMAL, FormatSizeOptions, format_size};
use jiff::Timestamp;

use super::Style;
use crate::plan::{Branch, ClonePlan, LocalPlace, Name, Recorded};
use crate::vantage::paths::escape;

/// A size as `docker system df` and disk vendors count: 1 kB is 1000 bytes.
pub fn size(bytes: u64) -> String {
    format_size(bytes, FormatSizeOptions::from(DECIMAL).decimal_places(1))
}

/// How long ago `then` was, in one unit: `3 h ago`, `5 days ago`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    let (minute, hour, day) = (60, 3_600, 86_400);
    match seconds {
        s if s < -minute => "in the future".to_owned(),
        s if s < minute => "now".to_owned(),
        s if s < hour => format!("{} min ago", s / minute),
        s if s < 2 * day => format!("{} h ago", s / hour),
        s if s < 14 * day => format!("{} days ago", s / day),
        s if s < 60 * day => format!("{} weeks ago", s / (7 * day)),
        s if s < 730 * day => format!("{} months ago", s / (30 * day)),
        s => format!("{} years ago", s / (365 * day)),
    }
}

/// `1 worktree`, `2 worktrees`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// The bytes of a field of the plan, and the same for a person's eyes.
pub trait Field {
    fn parts(&self) -> (Option<&str>, Option<&str>);

    /// The bytes, whether they are text or not; `None` if there is no such thing.
    fn raw(&self) -> Option<Vec<u8>> {
        let (text, bytes) = self.parts();
        let exact = bytes.and_then(|b| base64::prelude::BASE64_STANDARD.decode(b).ok());
        exact.or_else(|| text.map(|t| t.as_bytes().to_vec()))
    }

    /// Escaped, and empty if there is no such thing.
    fn shown(&self) -> String {
        self.raw().map(|raw| visible(&raw)).unwrap_or_default()
    }
}

macro_rules! field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            fn parts(&self) -> (Option<&str>, Option<&str>) {
                (self.text.as_deref(), self.bytes.as_deref())
            }
        }
    )*};
}
field!(Name, Recorded, LocalPlace, Branch, crate::plan::Path, crate::plan::CommonDir);

/// Escaped, with blanks at the ends shown as what they are.
pub fn visible(bytes: &[u8]) -> String {
    let text = escape(bytes);
    let inner = text.trim_matches(' ');
    let blanks = |n: usize| "\\u{20}".repeat(n);
    match inner.is_empty() {
        true => blanks(text.len()),
        false => {
            let leading = text.len() - text.trim_start_matches(' ').len();
            let trailing = text.len() - text.trim_end_matches(' ').len();
            format!("{}{inner}{}", blanks(leading), blanks(trailing))
        }
    }
}

/// A clone's directory for a heading, with `~` for the home directory.
pub fn heading(clone: &ClonePlan, home: Option<&Path>) -> String {
    place(&clone.path.raw().or_else(|| clone.common_dir.raw()).unwrap_or_default(), home)
}

/// A path that is only to be read, with `~` for the home directory.
pub fn place(raw: &[u8], home: Option<&Path>) -> String {
    let home = home.map(|h| h.as_os_str().as_encoded_bytes()).filter(|h| h.len() > 1);
    let rest = home.and_then(|h| raw.strip_prefix(h)).filter(|r| r.is_empty() || r.starts_with(b"/"));
    match rest {
        Some(rest) => format!("~{}", visible(rest)),
        None => visible(raw),
    }
}

/// `text` in lines of at most `width` columns.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.clamp(10, usize::from(u16::MAX)) as u16).add_row([text]);
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 0));
    }
    table.lines().map(|l| l.trim_end().to_owned()).collect()
}

/// `text` below an indentation, wrapped and dimmed.
pub fn indented(text: &str, indent: usize, style: &Style) -> String {
    let lines = wrap(text, style.width.map(|w| w.saturating_sub(indent)));
    lines.iter().map(|l| format!("{:indent$}{}\n", "", style.dim(l))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bstr::ByteSlice;

    #[test]
    fn sizes_are_decimal() {
        let shown: Vec<_> = [0, 999, 1_000, 1_234_567, 41_000_000_000, 1_200_000_000_000].map(size).into();
        assert_eq!(shown, ["0 B", "999 B", "1 kB", "1.2 MB", "41 GB", "1.2 TB"]);
    }

    #[test]
    fn ages_have_one_unit() {
        let now = Timestamp::from_second(2_000_000_000).unwrap();
        let shown = |ago: i64| age(Timestamp::from_second(2_000_000_000 - ago).unwrap(), now);
        let (h, d) = (3_600, 86_400);
        for (ago, expected) in [
            (-h, "in the future"),
            (-5, "now"),
            (59, "now"),
            (90, "1 min ago"),
            (3 * h, "3 h ago"),
            (47 * h, "47 h ago"),
            (5 * d, "5 days ago"),
            (20 * d, "2 weeks ago"),
            (60 * d, "2 months ago"),
            (800 * d, "2 years ago"),
        ] {
            assert_eq!(shown(ago), expected);
        }
    }

    #[test]
    fn what_is_not_text_is_shown_as_what_it_is() {
        let shown = |b: &[u8]| Name::of(Some(b.as_bstr())).shown();
        assert_eq!(shown(b"a\xff"), "a\\xff");
        assert_eq!(shown("\u{fffd}".as_bytes()), "\u{fffd}");
        assert_eq!(shown(b"a\n"), "a\\n");
        assert_eq!(shown(b" a "), "\\u{20}a\\u{20}");
        assert_eq!(shown(b"  "), "\\u{20}\\u{20}");
        assert_eq!(Name::default().shown(), "");
    }

    #[test]
    fn text_is_wrapped_at_words() {
        assert_eq!(wrap("one two three", Some(10)), ["one two", "three"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("日本語日本語日本語", Some(10)), ["日本語日本", "語日本語"]);
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
