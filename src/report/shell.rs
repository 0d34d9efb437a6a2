//! Commands that a person can copy into a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What was typed besides the command itself, so that a hint asks the same question about the same clones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Global flags that bear on verdicts, each with its value.
    pub flags: Vec<OsString>,
    /// As typed.
    pub roots: Vec<OsString>,
}

impl CommandLine {
    /// `treesweep VERB WORDS FLAGS ROOTS`.
    pub fn with_roots<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> String {
        self.line(words, self.roots.iter().map(|r| vec![r.as_os_str()]))
    }

    /// `treesweep VERB WORDS FLAGS --root ROOT ...`, for commands whose arguments are worktrees.
    pub fn with_root_flags<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> String {
        self.line(words, self.roots.iter().map(|r| vec![OsStr::new("--root"), r.as_os_str()]))
    }

    fn line<'a, W: AsRef<OsStr>>(
        &'a self,
        words: impl IntoIterator<Item = W>,
        roots: impl Iterator<Item = Vec<&'a OsStr>>,
    ) -> String {
        let mut line = vec!["treesweep".to_owned()];
        line.extend(words.into_iter().map(|w| quote(w.as_ref())));
        line.extend(self.flags.iter().map(|f| quote(f)));
        line.extend(roots.flatten().map(quote));
        line.join(" ")
    }
}

/// One word for a POSIX shell; what a terminal must not see is written as bash and zsh read it: `$'\xff'`.
pub fn quote(word: &OsStr) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(drives_terminal) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => ansi_c(word.as_bytes()),
    }
}

/// Control characters, and those that change the direction or can't be seen.
fn drives_terminal(c: char) -> bool {
    crate::vantage::paths::escape(c.encode_utf8(&mut [0; 4]).as_bytes()).len() != c.len_utf8()
}

fn ansi_c(bytes: &[u8]) -> String {
    let mut out = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if drives_terminal(c) => hex(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
                c => out.push(c),
            }
        }
        hex(chunk.invalid(), &mut out);
    }
    out.push('\'');
    out
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Three octal digits end by themselves; a hexadecimal escape would swallow a digit that follows.
        out.push_str(&format!("\\{byte:03o}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const WORDS: &[&[u8]] = &[
        b"plain-1.0_x/y",
        b"two words",
        b"it's",
        b"$HOME `x` \"y\" \\z",
        b"",
        b"~",
        b"new\nline",
        b"esc\x1b[31m7",
        b"raw\xff0",
        b"'\\\xfe",
        "\u{202e}rtl é".as_bytes(),
        b"-y",
        b"{a,b}*?",
    ];

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in WORDS {
            let script = format!("printf %s {}", quote(OsStr::from_bytes(word)));
            assert!(!script.chars().any(|c| c.is_control()), "{script:?}");
            let out = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(&out.stdout, word, "{script}");
        }
    }

    #[test]
    fn a_hint_carries_flags_and_roots() {
        let typed = CommandLine {
            flags: ["--idle", "0s", "--branch-template", "{name}"].map(Into::into).to_vec(),
            roots: vec!["my src".into()],
        };
        assert_eq!(
            typed.with_roots(["prune"]),
            "treesweep prune --idle 0s --branch-template '{name}' 'my src'"
        );
        assert_eq!(
            typed.with_root_flags(["drop", "x"]),
            "treesweep drop x --idle 0s --branch-template '{name}' --root 'my src'"
        );
        assert_eq!(CommandLine::default().with_roots(["prune"]), "treesweep prune");
    }
}
