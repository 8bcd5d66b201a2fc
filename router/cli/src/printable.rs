//! Makes untrusted text harmless for a terminal.
//!
//! Names of faces, messages and other texts come from a forwarder, which may be hostile. Their control characters could
//! move the cursor, overwrite the screen or send commands to the terminal, and directional marks could make a text read
//! differently. Such characters are shown as escapes.

use std::borrow::Cow;

/// Returns true if a terminal does not simply display this character.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Soft hyphen; directional marks, embeddings and isolates; zero-width characters; line and paragraph
            // separators; tags.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_harmful = |c: char| is_unprintable(c) && !is_kept(c);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) { escape(c, &mut harmless) } else { harmless.push(c) }
    }
    Cow::Owned(harmless)
}

fn push_escaped(c: char, text: &mut String) {
    text.extend(c.escape_default());
}

/// Escapes a text within a line, including line ends, so that it cannot look like several lines.
pub fn in_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false, push_escaped)
}

/// Escapes a text of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n', push_escaped)
}

/// Escapes JSON without changing its meaning. Apart from line ends, such characters occur only in strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let push = |c: char, text: &mut String| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    };
    escape(text, |c| c == '\n', push)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "a\u{1b}[2Jb\u{9b}31mc\u{202e}d\u{7f}\u{e0041}";

    #[test]
    fn what_commands_a_terminal_is_escaped_and_other_text_is_not() {
        assert_eq!(in_line(EVIL), "a\\u{1b}[2Jb\\u{9b}31mc\\u{202e}d\\u{7f}\\u{e0041}");
        assert_eq!(in_line("a\nnamehop: all is well\r"), "a\\nnamehop: all is well\\r");
        assert_eq!(lines("a\nb\r\n"), "a\nb\\r\n");
        for text in ["", "udp4://192.0.2.1:6363", "/name/%E2%80%AE", "\u{e4}\u{2192}\u{4e2d}\u{6587}"] {
            assert!(matches!(in_line(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "text": EVIL, "list": [1, "\n\t"] });
        let pretty = serde_json::to_string_pretty(&value).expect("written");
        let harmless = json(&pretty);
        assert!(!harmless.contains(|c: char| c != '\n' && is_unprintable(c)), "{harmless}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).expect("JSON"), value);
    }
}
