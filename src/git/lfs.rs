//! Git LFS pointers, read natively: what a clean filter would say is computed without running it.

use std::io::{self, Read};

use bstr::ByteSlice;
use sha2::{Digest, Sha256};

/// A pointer is a small text (the specification allows less than 1024 bytes).
pub const LONGEST: u64 = 1023;

/// What a pointer says of the file that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub sha256: [u8; 32],
    /// Bytes.
    pub size: u64,
}

impl Pointer {
    /// Reads exactly the canonical form (git-lfs `docs/spec.md`): `version`, `oid sha256:`, `size`, each ended by a
    /// newline. A pointer with extensions stands for what another program makes of the file, so it is none here.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() as u64 > LONGEST {
            return None;
        }
        let rest = bytes.strip_prefix(b"version https://git-lfs.github.com/spec/v1\n")?;
        let rest = rest.strip_prefix(b"oid sha256:")?;
        let (hex, rest) = rest.split_at_checked(64)?;
        let size = rest.strip_prefix(b"\nsize ")?.strip_suffix(b"\n")?;
        if size.is_empty() || !size.iter().all(u8::is_ascii_digit) || (size.len() > 1 && size[0] == b'0') {
            return None;
        }
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(hex.chunks(2)) {
            if !pair.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
                return None;
            }
            *byte = u8::from_str_radix(pair.to_str().ok()?, 16).ok()?;
        }
        Some(Self { sha256, size: size.to_str().ok()?.parse().ok()? })
    }

    /// Whether `content`, read to its end, is what the pointer stands for.
    pub fn stands_for(&self, content: impl Read) -> io::Result<bool> {
        let mut hasher = Sha256::new();
        // One byte more than expected tells a file that has grown.
        let mut content = content.take(self.size.saturating_add(1));
        let mut buffer = vec![0; 64 << 10];
        let mut read = 0;
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                n => {
                    read += n as u64;
                    hasher.update(&buffer[..n]);
                }
            }
        }
        Ok(read == self.size && hasher.finalize()[..] == self.sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_DATA: &str = "version https://git-lfs.github.com/spec/v1\n\
        oid sha256:6667b2d1aab6a00caa5aee5af8ad9f1465e567abf1c209d15727d57b3e8f6e5f\nsize 5\n";

    #[test]
    fn only_the_canonical_form_is_a_pointer() {
        let pointer = Pointer::parse(OF_DATA.as_bytes()).unwrap();
        assert!(pointer.stands_for(&b"data\n"[..]).unwrap());
        assert!(!pointer.stands_for(&b"Data\n"[..]).unwrap());
        assert!(!pointer.stands_for(&b"data\nmore"[..]).unwrap());
        for bad in [
            "",
            "data\n",
            &OF_DATA.replace("size 5", "size 05"),
            &OF_DATA.replace("size 5", "size +5"),
            &OF_DATA.replace("6667b2", "6667B2"),
            &OF_DATA.replace("6667b2", "+667b2"),
            &OF_DATA.replace("oid", "ext-0-x sha256:00\noid"),
            OF_DATA.trim_end(),
        ] {
            assert_eq!(Pointer::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
