//! How much of a file system is wanted free.

use std::fmt;

use super::value::BadValue;
use crate::vantage::paths::escape;

/// A number of bytes, or a share of what the file system can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Bytes(u64),
    Percent(u8),
}

impl Amount {
    /// `20G` and `20GB` are 20,000,000,000 bytes, as sizes are shown; `20GiB` is the binary unit. `15%` is a share.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let bad = || BadValue::Amount(escape(text.as_bytes()));
        match text.strip_suffix('%') {
            Some(share) => {
                let share = share.parse().ok().filter(|s| (1..=99).contains(s)).ok_or_else(bad)?;
                Ok(Self::Percent(share))
            }
            None if text.starts_with(|c: char| c.is_ascii_digit()) => {
                parse_size::parse_size(text).map(Self::Bytes).map_err(|_| bad())
            }
            None => Err(bad()),
        }
    }

    /// In bytes, of a file system that can hold `size`.
    pub fn of(self, size: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(share) => u64::try_from(u128::from(size) * u128::from(share) / 100).unwrap_or(size),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&crate::report::size(*bytes)),
            Self::Percent(share) => write!(f, "{share} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_unless_they_say_so() {
        for (text, bytes) in
            [("0", 0), ("512", 512), ("20G", 20_000_000_000), ("20GB", 20_000_000_000), ("1.5MiB", 1_572_864)]
        {
            assert_eq!(Amount::parse(text), Ok(Amount::Bytes(bytes)), "{text}");
        }
        for text in ["", "G", "-1G", "10 apples", "0%", "100%", "1.5%", "%", "99999999999999999999T"] {
            assert!(Amount::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_of_the_whole() {
        let share = Amount::parse("15%").unwrap();
        assert_eq!((share, share.to_string().as_str()), (Amount::Percent(15), "15 %"));
        assert_eq!(share.of(1_000), 150);
        assert_eq!(share.of(u64::MAX), u64::try_from(u128::from(u64::MAX) * 15 / 100).unwrap());
        assert_eq!(Amount::Bytes(7).of(1_000), 7);
    }
}
