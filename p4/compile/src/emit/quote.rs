//! Text of a program in C. Names, annotations and file names reach C as one of these types or as an `identifier`, never as they are.

use std::fmt;

/// A comment of C that shows a text.
///
/// Letters, digits and a few signs are kept, all other characters become `_`. None of the kept signs begins, ends or continues a
/// comment, and none is part of a trigraph or a line splice, so the comment ends where it is written to end.
pub struct Comment(String);

impl Comment {
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

/// A string literal of C, with its quotes, whose value has exactly the bytes of a text.
///
/// Bytes outside of printable ASCII are octal escapes of three digits, and so is `?`, which begins trigraphs. Functions of C see the text
/// up to its first NUL.
pub struct Literal(String);

impl Literal {
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
