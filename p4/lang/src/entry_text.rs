//! Entries of tables, actions, values and names as text, the same in test files and in control requests:
//! `table [priority] key:value … action(name:value, …)`. Names may be abbreviated to their ends.

use std::borrow::Cow;
use std::net::IpAddr;

use num_bigint::BigInt;
use num_traits::Num;

/// A number, with wildcard digits (`*`) or a prefix length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number; digits that are wildcards are 0.
    pub value: BigInt,
    /// Mask of the bits that matter; `None` if all do.
    pub mask: Option<BigInt>,
    /// Length of the prefix in bits, if one was given.
    pub prefix: Option<u32>,
}

/// An action with its arguments, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall<'t> {
    /// The name of the action or the end of it.
    pub name: &'t str,
    /// Names and values of its arguments.
    pub arguments: Vec<(&'t str, BigInt)>,
}

/// An entry as written. Without an action, it refers to an existing entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryText<'t> {
    /// The name of the table or the end of it.
    pub table: &'t str,
    /// The priority, if one was given.
    pub priority: Option<i64>,
    /// Names and values of the keys.
    pub keys: Vec<(&'t str, Number)>,
    /// The action, if one was given.
    pub action: Option<ActionCall<'t>>,
}

/// Parses an IPv4, IPv6 or hardware address.
fn address(text: &str) -> Option<BigInt> {
    if let [digits @ .., high, low] = text.as_bytes()
        && digits.len() == 15
        && let groups = digits.chunks(3).map(|group| (group[0], group[1], group[2])).chain([(*high, *low, b':')])
        && let Some(number) = groups.into_iter().try_fold(0, |number: u64, (high, low, colon)| {
            let pair = char::from(high).to_digit(16)? << 4 | char::from(low).to_digit(16)?;
            (colon == b':').then_some(number << 8 | u64::from(pair))
        })
    {
        return Some(number.into());
    }
    text.parse().ok().map(|address| match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits().into(),
    })
}

/// Parses an integer: decimal, 0x…, 0b…, or an address.
pub fn integer(text: &str) -> Result<BigInt, String> {
    if text.contains(['.', ':'])
        && let Some(address) = address(text)
    {
        return Ok(address);
    }
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        _ => (10, text),
    };
    if digits.len() > 4096 {
        return Err("a number is too long".into());
    }
    let none = |_| format!("'{text}' is not a number");
    // Fast path: most numbers are small, and tables are filled with millions of entries.
    match u128::from_str_radix(digits, radix) {
        Ok(number) => Ok(number.into()),
        Err(_) => BigInt::from_str_radix(digits, radix).map_err(none),
    }
}

/// Parses the value of a key: a number with `*`, with `/length` or with `&&&mask`.
fn key_number(text: &str, tokens: &mut Tokens<'_>) -> Result<Number, String> {
    let mut number = if text.contains('*') {
        starred(text)?
    } else {
        match text.split_once("..") {
            Some((first, last)) => Number { value: integer(first)?, mask: Some(integer(last)?), prefix: None },
            None => Number { value: integer(text)?, mask: None, prefix: None },
        }
    };
    if tokens.take("/") {
        let length = integer(tokens.word("the length of a prefix")?)?;
        number.prefix = Some(u32::try_from(&length).map_err(|_| "the length of a prefix is too large")?);
    } else if tokens.take("&&&") {
        (number.mask, number.prefix) = (Some(integer(tokens.word("a mask")?)?), None);
    }
    Ok(number)
}

/// Parses a number with wildcard digits. It also counts as a prefix, of the digits before the first `*`.
fn starred(text: &str) -> Result<Number, String> {
    if text == "*" {
        return Ok(Number { value: 0.into(), mask: Some(0.into()), prefix: Some(0) });
    }
    let lower = text.to_ascii_lowercase();
    let (bits, ones) = match &lower.as_bytes()[..2] {
        b"0x" => (4, "f"),
        b"0b" => (1, "1"),
        _ => return Err(format!("'*' is allowed only in hexadecimal and binary numbers, not in '{text}'")),
    };
    let value = integer(&lower.replace('*', "0"))?;
    let digits: String = lower[2..].chars().map(|digit| if digit == '*' { "0" } else { ones }).collect();
    let mask = integer(&format!("{}{digits}", &lower[..2]))?;
    let before = lower[2..].chars().take_while(|digit| *digit != '*').count();
    Ok(Number { value, mask: Some(mask), prefix: Some(before as u32 * bits) })
}

/// Parses `table action(name:value, …)`.
pub fn default_action(rest: &str) -> Result<(&str, ActionCall<'_>), String> {
    let mut tokens = Tokens::new(rest);
    let table = tokens.word("the name of a table")?;
    let action = tokens.action()?;
    tokens.end()?;
    Ok((table, action))
}

/// Parses a member of a value set: values separated by commas.
pub fn member(text: &str) -> Result<Vec<Number>, String> {
    Tokens::new(text).numbers()
}

/// Parses `action(name:value, …)`.
pub fn action(text: &str) -> Result<ActionCall<'_>, String> {
    let mut tokens = Tokens::new(text);
    let action = tokens.action()?;
    tokens.end()?;
    Ok(action)
}

/// Parses `table [priority] key:value … [action(name:value, …)]`.
pub fn entry(rest: &str) -> Result<EntryText<'_>, String> {
    let mut tokens = Tokens::new(rest);
    let table = tokens.word("the name of a table")?;
    let mut priority = None;
    let mut keys = Vec::new();
    loop {
        if tokens.rest.is_empty() {
            return Ok(EntryText { table, priority, keys, action: None });
        }
        let mut ahead = tokens.clone();
        let word = ahead.word("an action")?;
        if ahead.take(":") {
            let value = ahead.word("the value of a key")?;
            let value = key_number(value, &mut ahead)?;
            keys.push((word, value));
            tokens = ahead;
        } else if keys.is_empty() && priority.is_none() && word.bytes().all(|digit| digit.is_ascii_digit()) {
            priority = Some(word.parse().map_err(|_| "the priority is out of range")?);
            tokens = ahead;
        } else {
            let action = Some(tokens.action()?);
            tokens.end()?;
            return Ok(EntryText { table, priority, keys, action });
        }
    }
}

/// The index of a name: an exact match, or the only name with this end.
pub fn resolve<'n>(name: &str, all: impl Iterator<Item = &'n str> + Clone) -> Result<usize, String> {
    if let Some(place) = all.clone().position(|other| other == name) {
        return Ok(place);
    }
    let mut found = all.enumerate().filter(|(_, other)| other.ends_with(name));
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (Some((_, first)), Some((_, second))) => Err(format!("'{name}' is ambiguous: {first} or {second}")),
        (None, _) => Err(format!("there is no '{name}'")),
    }
}

/// Normalizes the spelling of a key: `a$0`, `a[0]`; `h.valid`, `h.$valid$`, `h.isValid()`.
pub fn normal(name: &str) -> Cow<'_, str> {
    // Fast path: tables are filled with millions of entries, and few names need a change.
    if !name.contains(['$', '(', '[', ']']) {
        return name.into();
    }
    let name = name.replace("$valid$", "valid").replace("isValid()", "valid");
    name.replace('[', "$").replace(']', "").into()
}

/// Tokenizer of a line.
#[derive(Clone)]
pub struct Tokens<'a> {
    /// The rest of the line, without leading spaces.
    pub rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Begins at the start of a line.
    pub fn new(rest: &'a str) -> Self {
        Tokens { rest: rest.trim_start() }
    }

    /// Takes `sign` if the rest begins with it; returns whether it does.
    pub fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Takes a name, which may be in double quotes. `what` names it in the error.
    pub fn word(&mut self, what: &str) -> Result<&'a str, String> {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            let (word, rest) = quoted.split_once('"').ok_or("missing closing quote of a name")?;
            self.rest = rest.trim_start();
            return Ok(word);
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, ':' | '(' | ')' | ',' | '=' | '/' | '&');
        let length = self.rest.find(ends).unwrap_or(self.rest.len());
        if length == 0 {
            return Err(format!("{what} is missing"));
        }
        let word = &self.rest[..length];
        self.rest = self.rest[length..].trim_start();
        Ok(word)
    }

    /// Checks that the line ends here.
    fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("unexpected '{}'", self.rest)) }
    }

    /// Key values up to the end of the line.
    pub fn numbers(&mut self) -> Result<Vec<Number>, String> {
        let mut list = Vec::new();
        while !self.rest.is_empty() {
            let word = self.word("a value")?;
            list.push(key_number(word, self)?);
            self.take(",");
        }
        Ok(list)
    }

    fn action(&mut self) -> Result<ActionCall<'a>, String> {
        let name = self.word("an action")?;
        let mut arguments = Vec::new();
        if !self.take("(") {
            return Err(format!("the arguments of action {name} are missing"));
        }
        while !self.take(")") {
            let argument = self.word("the name of an argument")?;
            if !self.take(":") {
                return Err(format!("':' is missing after '{argument}'"));
            }
            arguments.push((argument, integer(self.word("the value of an argument")?)?));
            self.take(",");
        }
        Ok(ActionCall { name, arguments })
    }
}
