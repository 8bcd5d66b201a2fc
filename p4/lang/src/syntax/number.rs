//! Integer literals: `10`, `0xFF`, `8w0b1010_1010`, `4s7`.

use num_bigint::BigInt;
use num_traits::Num;

/// The widest supported integer type, in bits. P4 sets no limit, but a limit is needed to bound memory use.
pub const MAX_WIDTH: u32 = 1 << 16;

/// An integer literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub value: BigInt,
    /// Width in bits, and whether it is signed; `None` for an integer of arbitrary size.
    pub width: Option<(u32, bool)>,
}

/// Parses a literal. The error says what is wrong with it.
pub fn parse(text: &str) -> Result<Literal, String> {
    let prefix = text.find(|c: char| !c.is_ascii_digit());
    let (width, digits) = match prefix {
        Some(at) if matches!(text.as_bytes()[at], b'w' | b's') => {
            let width: u32 = text[..at]
                .parse()
                .ok()
                .filter(|width| *width <= MAX_WIDTH)
                .ok_or_else(|| format!("the width of a number must be at most {MAX_WIDTH} bits"))?;
            let signed = text.as_bytes()[at] == b's';
            if signed && width == 0 {
                return Err("a signed number needs at least one bit".into());
            }
            (Some((width, signed)), &text[at + 1..])
        }
        _ => (None, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0d") => (10, &lower[2..]),
        _ => (10, &*lower),
    };
    let body: String = body.chars().filter(|c| *c != '_').collect();
    // Parsing a decimal number takes time quadratic in its length.
    if body.len() > (MAX_WIDTH / if radix == 10 { 3 } else { 1 }) as usize {
        return Err(format!("the number is too long: at most {MAX_WIDTH} bits are supported"));
    }
    let value = BigInt::from_str_radix(&body, radix).map_err(|_| format!("'{text}' is not a number"))?;
    if value.bits() > u64::from(MAX_WIDTH) {
        return Err(format!("the number is too large: at most {MAX_WIDTH} bits are supported"));
    }
    Ok(Literal { value, width })
}
