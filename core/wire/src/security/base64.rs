//! Base64 (RFC 4648, section 4) as used in certificate and key files: wrapped lines, insignificant white space.
//!
//! Private keys are encoded here, so the library is one with constant-time encoding.

use base64ct::{Base64, Encoding};

use super::SecurityError;

/// Characters per line.
const LINE: usize = 64;

/// Encodes in lines of 64 characters, each terminated by a line feed.
pub fn encode_lines(bytes: &[u8]) -> String {
    let encoded = Base64::encode_string(bytes);
    let mut rest = encoded.as_str();
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

/// Decodes; white space is ignored anywhere.
///
/// # Errors
/// `BadText` for other characters, missing or misplaced padding, or non-zero leftover bits.
pub fn decode(text: &str) -> Result<Vec<u8>, SecurityError> {
    let dense: String = text.split_ascii_whitespace().collect();
    Base64::decode_vec(&dense).map_err(|_| SecurityError::BadText)
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
            prop_assert_eq!(decode(&text).expect("the encoding of this module"), bytes);
        }

        #[test]
        fn decoding_any_text_ends(text in "[A-D=/ ]{0,20}|\\PC{0,20}") {
            let _ = decode(&text);
        }
    }
}
