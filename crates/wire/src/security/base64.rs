//! Base64 (RFC 4648, section 4) as it stands in certificate and key files: wrapped lines, white space of no meaning.

use super::SecurityError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters per line.
const LINE: usize = 64;

/// Encodes in lines of 64 characters, each ended by a line feed.
pub fn encode_lines(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 3 * 4 + bytes.len() / 48 + 8);
    for line in bytes.chunks(LINE / 4 * 3) {
        for group in line.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for index in 0..4 {
                if index <= group.len() {
                    text.push(char::from(ALPHABET[(bits >> (18 - 6 * index) & 63) as usize]));
                } else {
                    text.push('=');
                }
            }
        }
        text.push('\n');
    }
    text
}

/// Decodes; white space is passed over anywhere.
///
/// # Errors
/// `BadText` for other characters, missing or misplaced padding, or bits left over.
pub fn decode(text: &str) -> Result<Vec<u8>, SecurityError> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0_u32;
    let mut characters = 0;
    let mut padding = 0;
    let mut is_complete = false;
    for character in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        if is_complete {
            return Err(SecurityError::BadText);
        }
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            // Padding stands only in the last two places of a group of four.
            b'=' if characters >= 2 => {
                padding += 1;
                0
            }
            _ => return Err(SecurityError::BadText),
        };
        if padding > 0 && character != b'=' {
            return Err(SecurityError::BadText);
        }
        bits = bits << 6 | u32::from(value);
        characters += 1;
        if characters == 4 {
            let group = bits.to_be_bytes();
            let (kept, left_over) = group[1..].split_at(3 - padding);
            if left_over.iter().any(|&byte| byte != 0) {
                return Err(SecurityError::BadText);
            }
            bytes.extend_from_slice(kept);
            (bits, characters) = (0, 0);
            // Nothing but white space may follow a padded group.
            is_complete = padding > 0;
        }
    }
    if characters == 0 { Ok(bytes) } else { Err(SecurityError::BadText) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode_lines(bytes.as_bytes()).trim_end(), text);
            assert_eq!(decode(text).expect("valid"), bytes.as_bytes());
        }
        assert_eq!(decode("  Zm\r\n9v\tY g\n= =\n").expect("valid"), b"foob");
        assert_eq!(encode_lines(&[255; 49]), format!("{}\n/w==\n", "/".repeat(64)));
    }

    #[test]
    fn bad_texts() {
        for text in
            ["Z", "Zg", "Zg=", "Zm9", "=", "Z===", "====", "Zg==Zg==", "Zg=a", "Zh==", "Zm9=", "Zm9v!", "Zg===", "Zg-_"]
        {
            assert!(matches!(decode(text), Err(SecurityError::BadText)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = encode_lines(&bytes);
            prop_assert!(text.lines().all(|line| line.len() <= LINE));
            prop_assert_eq!(decode(&text).expect("own encoding"), bytes);
        }

        #[test]
        fn decoding_any_text_ends(text in "[A-D=/ ]{0,20}|\\PC{0,20}") {
            let _ = decode(&text);
        }
    }
}
