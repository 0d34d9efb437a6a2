//! One JSON document for a program.

use std::io::{self, Write};

use serde::Serialize;

/// Writes `document` with a line break at its end. Control characters and direction marks are escaped beyond what JSON
/// asks for, since a person may look at it in a terminal.
pub fn write(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    out.write_all(render(document)?.as_bytes())?;
    out.flush()
}

/// The same on one line.
pub fn write_line(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let text = serde_json::to_string(document).map_err(io::Error::other)?;
    out.write_all(safe(&text).as_bytes())?;
    out.flush()
}

fn render(document: &impl Serialize) -> io::Result<String> {
    Ok(safe(&serde_json::to_string_pretty(document).map_err(io::Error::other)?))
}

/// `text` with what a terminal would obey as escapes, and a line break at its end.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Only inside of strings does JSON have such characters, so an escape is right wherever one is.
        match c != '\n'
            && crate::vantage::paths::escape(c.encode_utf8(&mut [0; 4]).as_bytes()).len() != c.len_utf8()
        {
            true => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")))
            }
            false => safe.push(c),
        }
    }
    safe.push('\n');
    safe
}

#[cfg(test)]
mod recovery;
#[cfg(test)]
mod schema;
#[cfg(test)]
pub(super) mod validator;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_it_drives_a_terminal() {
        let document = serde_json::json!({"a": "é\u{9b}31m\u{7f}\u{202e}\n\u{1b}", "b": [1]});
        let text = render(&document).unwrap();
        assert!(text.ends_with("}\n"));
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }
}
