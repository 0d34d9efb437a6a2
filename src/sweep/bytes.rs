//! Bytes in JSON: a string where they are UTF-8, else `{"base64": ...}`, so that every path survives exactly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bstr::{BString, ByteSlice};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::vantage::paths::{EntryName, LocalPath, RecordedPath};

/// A path or a name as a file of ours holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub BString);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'a> {
    Text(std::borrow::Cow<'a, str>),
    Raw { base64: std::borrow::Cow<'a, str> },
}

impl Bytes {
    pub fn new(bytes: impl Into<BString>) -> Self {
        Self(bytes.into())
    }

    /// These bytes as an absolute path.
    pub fn local(&self) -> Option<LocalPath> {
        LocalPath::new(self.0.to_path().ok()?)
    }

    /// These bytes as an entry's name.
    pub fn entry_name(&self) -> Option<EntryName> {
        EntryName::new(self.0.clone())
    }
}

impl From<&LocalPath> for Bytes {
    fn from(path: &LocalPath) -> Self {
        Self(path.as_bstr().to_owned())
    }
}

impl From<&EntryName> for Bytes {
    fn from(name: &EntryName) -> Self {
        Self(name.as_bstr().to_owned())
    }
}

impl From<&RecordedPath> for Bytes {
    fn from(path: &RecordedPath) -> Self {
        Self(path.as_bstr().to_owned())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Ok(text) => Form::Text(text.into()).serialize(serializer),
            Err(_) => Form::Raw { base64: STANDARD.encode(&self.0).into() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(Self(text.into_owned().into())),
            Form::Raw { base64 } => {
                STANDARD.decode(base64.as_bytes()).map(|b| Self(b.into())).map_err(de::Error::custom)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_survives() {
        for bytes in [&b"/w/x"[..], b"/w/\xff\n", b"", "/w/\u{202e}".as_bytes()] {
            let json = serde_json::to_string(&Bytes::new(bytes)).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap().0, bytes, "{json}");
        }
    }
}
