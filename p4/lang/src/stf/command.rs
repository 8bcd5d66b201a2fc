//! The commands of a test file, one per line.

use num_bigint::BigInt;

use crate::entry_text::{ActionCall, EntryText, Number, Tokens, default_action, entry, integer};

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
