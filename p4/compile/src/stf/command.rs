//! The commands of a test file, one per line.

use std::net::IpAddr;

use num_bigint::BigInt;
use num_traits::Num;

/// A number, with wildcard digits (`*`) or a prefix length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    pub value: BigInt,
    /// Mask of the bits that matter; `None` if all do.
    pub mask: Option<BigInt>,
    pub prefix: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall<'t> {
    pub name: &'t str,
    pub arguments: Vec<(&'t str, BigInt)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'t> {
    Add {
        table: &'t str,
        priority: Option<i64>,
        keys: Vec<(&'t str, Number)>,
        action: ActionCall<'t>,
    },
    SetDefault {
        table: &'t str,
        action: ActionCall<'t>,
    },
    Packet {
        port: u64,
        bytes: Vec<u8>,
    },
    /// Expected nibbles, `None` for any; the packet has exactly this length, or at least this length.
    Expect {
        port: u64,
        nibbles: Vec<Option<u8>>,
        exact: bool,
    },
    CheckCounter {
        name: &'t str,
        index: u64,
        bytes: bool,
        operator: &'t str,
        number: u64,
    },
    /// Sets the target of a mirroring session: a port or a group. `longest_bytes` limits the length of copies; 0 means
    /// no limit.
    Mirror {
        session: u64,
        is_group: bool,
        target: u64,
        longest_bytes: u32,
    },
    MirrorDelete {
        session: u64,
    },
    GroupCreate {
        group: u64,
    },
    NodeCreate {
        replica: u64,
        ports: Vec<u64>,
    },
    NodeAssociate {
        group: u64,
        node: u64,
    },
    RegisterWrite {
        name: &'t str,
        index: u64,
        value: BigInt,
    },
    RegisterReset {
        name: &'t str,
    },
    CounterWrite {
        name: &'t str,
        index: u64,
        packets: u64,
        bytes: u64,
    },
    /// Adds a member to a value set.
    ValueSetAdd {
        name: &'t str,
        values: Vec<Number>,
    },
    /// A read; its result is not compared.
    Read,
}

/// An entry as written. Without an action, it refers to an existing entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryText<'t> {
    pub table: &'t str,
    pub priority: Option<i64>,
    pub keys: Vec<(&'t str, Number)>,
    pub action: Option<ActionCall<'t>>,
}

/// Parses one line. `None` for an empty one.
pub fn parse(line: &str) -> Result<Option<Command<'_>>, String> {
    let line = line.split('#').next().unwrap_or("").trim();
    let Some(word) = line.split_whitespace().next() else { return Ok(None) };
    let rest = line[word.len()..].trim();
    let mut words = rest.split_whitespace();
    let mut number = |what: &str| -> Result<u64, String> {
        let word = words.next().ok_or_else(|| format!("{what} is missing"))?;
        let value = integer(word)?;
        u64::try_from(&value).map_err(|_| format!("{what} is out of range: {word}"))
    };
    Ok(Some(match &*word.to_ascii_lowercase() {
        "add" => {
            let EntryText { table, priority, keys, action } = entry(rest)?;
            Command::Add { table, priority, keys, action: action.ok_or("an action is missing")? }
        }
        "setdefault" => {
            let (table, action) = default_action(rest)?;
            Command::SetDefault { table, action }
        }
        "packet" => {
            let port = number("the port")?;
            let digits: String = words.collect();
            if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err("a packet must consist of whole bytes in hexadecimal digits".into());
            }
            let bytes = digits.as_bytes().chunks(2).filter_map(|pair| {
                let text = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(text, 16).ok()
            });
            Command::Packet { port, bytes: bytes.collect() }
        }
        "expect" => {
            let port = number("the port")?;
            let mut digits: String = words.collect();
            let exact = digits.ends_with('$');
            if exact {
                digits.pop();
            }
            let nibbles = digits
                .chars()
                .map(|digit| match digit {
                    '*' => Ok(None),
                    digit => digit
                        .to_digit(16)
                        .map(|digit| Some(digit as u8))
                        .ok_or("an expected packet must consist of hexadecimal digits and '*'"),
                })
                .collect::<Result<_, _>>()?;
            Command::Expect { port, nibbles, exact }
        }
        "check_counter" => check_counter(rest)?,
        "mirroring_add" | "mirroring_add_mc" => {
            let (session, target) = (number("the session")?, number("the port or group")?);
            let longest_bytes = words.next().map_or(Ok(0), |word| {
                let bytes = u32::try_from(&integer(word)?).map_err(|_| format!("not a length: {word}"))?;
                Ok::<_, String>(bytes)
            })?;
            Command::Mirror { session, is_group: word.len() > "mirroring_add".len(), target, longest_bytes }
        }
        "mirroring_delete" => Command::MirrorDelete { session: number("the session")? },
        "mc_mgrp_create" => Command::GroupCreate { group: number("the group")? },
        "mc_node_create" => {
            let replica = number("the replication number")?;
            let mut ports = Vec::new();
            for word in words {
                ports.push(u64::try_from(&integer(word)?).map_err(|_| format!("not a port: {word}"))?);
            }
            Command::NodeCreate { replica, ports }
        }
        "mc_node_associate" => Command::NodeAssociate { group: number("the group")?, node: number("the node")? },
        "register_write" => {
            let mut tokens = Tokens::new(rest);
            let name = tokens.word("the name of a register")?;
            let index = u64::try_from(&integer(tokens.word("the index")?)?).map_err(|_| "the index is out of range")?;
            Command::RegisterWrite { name, index, value: integer(tokens.word("the value")?)? }
        }
        "register_reset" => Command::RegisterReset { name: Tokens::new(rest).word("the name of a register")? },
        "counter_write" => {
            let mut tokens = Tokens::new(rest);
            let name = tokens.word("the name of a counter")?;
            let mut next = |what| -> Result<u64, String> {
                u64::try_from(&integer(tokens.word(what)?)?).map_err(|_| format!("{what} is out of range"))
            };
            Command::CounterWrite { name, index: next("the index")?, packets: next("packets")?, bytes: next("bytes")? }
        }
        "value_set_add" => {
            let mut tokens = Tokens::new(rest);
            let name = tokens.word("the name of a value set")?;
            Command::ValueSetAdd { name, values: tokens.numbers()? }
        }
        "register_read"
        | "counter_read"
        | "mirroring_get"
        | "meter_get_rates"
        | "meter_set_rates"
        | "meter_array_set_rates"
        | "wait"
        | "no_packet"
        | "remove"
        | "mc_node_update" => Command::Read,
        other => return Err(format!("unknown command '{other}'")),
    }))
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

fn check_counter(rest: &str) -> Result<Command<'_>, String> {
    let mut tokens = Tokens::new(rest);
    let name = tokens.word("the name of a counter")?;
    let mut index = 0;
    if tokens.take("(") {
        index = u64::try_from(&integer(tokens.word("an index")?)?).map_err(|_| "the index is out of range")?;
        if !tokens.take(")") {
            return Err("')' is missing".into());
        }
    }
    let words: Vec<&str> = tokens.rest.split_whitespace().collect();
    let (kind, operator, number) = match words[..] {
        [] => ("packets", ">=", "0"),
        [kind @ ("packets" | "bytes"), operator, number] => (kind, operator, number),
        _ => return Err("write: check_counter NAME(INDEX) packets|bytes OPERATOR NUMBER".into()),
    };
    if !matches!(operator, "==" | "!=" | "<" | "<=" | ">" | ">=") {
        return Err(format!("unknown comparison '{operator}'"));
    }
    let number = u64::try_from(&integer(number)?).map_err(|_| "the number is out of range")?;
    Ok(Command::CheckCounter { name, index, bytes: kind == "bytes", operator, number })
}

/// Tokenizer of a line.
#[derive(Clone)]
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn new(rest: &'a str) -> Self {
        Tokens { rest: rest.trim_start() }
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
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
    fn numbers(&mut self) -> Result<Vec<Number>, String> {
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
