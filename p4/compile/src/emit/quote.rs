//! Text of a P4 program in C code. Names, annotations and file names reach the C code only through one of these types
//! or as an `identifier`, never unchanged.

use std::fmt;

/// A C comment that shows a text.
///
/// Letters, digits and some punctuation are kept; all other characters become `_`. The kept characters cannot begin,
/// end or continue a comment, and cannot form a trigraph or a line splice, so the comment ends where intended.
pub struct Comment(String);

impl Comment {
    /// Makes a comment that shows `text`.
    pub fn of(text: &str) -> Self {
        let is_kept = |c: char| c.is_ascii_alphanumeric() || " _.,:;$@#&|^!=<>()[]{}+-".contains(c);
        Comment(text.chars().map(|c| if is_kept(c) { c } else { '_' }).collect())
    }
}

impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/* {} */", self.0)
    }
}

/// A C string literal, with quotes, that has exactly the bytes of a text.
///
/// Bytes outside of printable ASCII become octal escapes of three digits, and so does `?`, which begins trigraphs. C
/// functions see the text up to its first NUL.
pub struct Literal(String);

impl Literal {
    /// Makes a literal with the bytes of `text`.
    pub fn of(text: &str) -> Self {
        Literal(text.bytes().fold(String::new(), |mut quoted, byte| {
            match byte {
                b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                b' '..=b'~' if byte != b'?' => quoted.push(char::from(byte)),
                _ => quoted += &format!("\\{byte:03o}"),
            }
            quoted
        }))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}
