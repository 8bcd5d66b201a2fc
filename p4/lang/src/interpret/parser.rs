//! Parsers: states, transitions, and reading from the packet.

use super::table::Match;
use super::{Frame, Run, Stop, Switch};
use crate::syntax::ast::StructKind;
use crate::tree::{Argument, Expr, ExprKind, Next, Parser, Transition};
use crate::types::{Ty, Type};
use crate::value::Value;

/// Maximum number of states that a parser passes for one packet.
const MAX_STATES: usize = 100_000;

impl<'p> Switch<'p> {
    pub(super) fn parse(&mut self, frame: &mut Frame, parser: &'p Parser) -> Run<()> {
        let mut next = parser.start;
        for _ in 0..MAX_STATES {
            let state = match next {
                Next::Accept => return Ok(()),
                Next::Reject => return Err(Stop::Reject(0)),
                Next::State(number) => &parser.states[number],
            };
            self.step()?;
            self.run(frame, &state.body)?;
            next = match &state.next {
                Transition::To(next) => *next,
                Transition::Select { keys, cases } => {
                    let mut values = Vec::new();
                    for key in keys {
                        values.push(self.evaluate(frame, key)?);
                    }
                    let mut found = None;
                    for (sets, next) in cases {
                        if self.matches_all(frame, &values, sets)? {
                            found = Some(*next);
                            break;
                        }
                    }
                    found.ok_or_else(|| self.parser_error("NoMatch"))?
                }
            };
        }
        Err(self.parser_error("ParserTimeout"))
    }

    /// True if all values are in their sets.
    fn matches_all(&mut self, frame: &mut Frame, values: &[Value], sets: &'p [Expr]) -> Run<bool> {
        if let [Expr { kind: ExprKind::ValueSet(number), .. }] = sets {
            let members = self.unit_of(frame).and_then(|unit| unit.value_sets.get(*number));
            return Ok(members.is_some_and(|members| members.iter().any(|member| fits(member, values))));
        }
        for (value, set) in values.iter().zip(sets) {
            if !self.is_in(frame, value, set)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn is_in(&mut self, frame: &mut Frame, value: &Value, set: &'p Expr) -> Run<bool> {
        Ok(match &set.kind {
            ExprKind::DontCare => true,
            ExprKind::Mask(left, mask) => {
                let left = self.evaluate(frame, left)?.int();
                let mask = self.evaluate(frame, mask)?.int();
                value.int() & &mask == left & &mask
            }
            ExprKind::Range(first, last) => {
                let first = self.evaluate(frame, first)?.int();
                let last = self.evaluate(frame, last)?.int();
                (first..=last).contains(&value.int())
            }
            ExprKind::ValueSet(number) => {
                let members = self.unit_of(frame).and_then(|unit| unit.value_sets.get(*number));
                members.is_some_and(|members| members.iter().any(|member| fits(member, std::slice::from_ref(value))))
            }
            _ => self.evaluate(frame, set)? == *value,
        })
    }

    /// The methods of `packet_in`.
    pub(super) fn packet_in(&mut self, frame: &mut Frame, name: &str, arguments: &'p [Argument], ty: Ty) -> Run<Value> {
        let first = arguments.first().and_then(|argument| argument.value.as_ref());
        match name {
            "extract" => {
                let bits = match arguments.get(1).and_then(|argument| argument.value.as_ref()) {
                    Some(bits) => Some(self.evaluate(frame, bits)?.number()),
                    None => None,
                };
                let place = match first {
                    Some(target) => Some(self.place(frame, target)?),
                    None => None,
                };
                let ty = arguments.first().map_or(ty, |argument| argument.ty);
                let header = self.extract(ty, bits)?;
                if let Some(place) = place {
                    self.write(frame, &place, header);
                    if let Some(stack) = &place.next_of
                        && let Value::Stack { next, elements } = self.read(frame, stack)
                    {
                        self.write(frame, stack, Value::Stack { next: next + 1, elements });
                    }
                }
                Ok(Value::None)
            }
            "lookahead" => {
                let width = self.program.types.width(ty).unwrap_or(0);
                self.need(width)?;
                let mut position = self.position;
                Ok(self.input.read_value(&self.program.types, ty, &mut position))
            }
            "advance" => {
                let bits = match first {
                    Some(bits) => self.evaluate(frame, bits)?.number(),
                    None => 0,
                };
                // As in the behavioural model, only whole bytes of packets are read.
                if !bits.is_multiple_of(8) {
                    return Err(self.parser_error("ParserInvalidArgument"));
                }
                self.need(bits)?;
                self.position += bits as usize;
                Ok(Value::None)
            }
            "length" => Ok(Value::Int((self.input.len() / 8).into())),
            _ => Err(Stop::Failure(format!("packet_in has no method {name}"))),
        }
    }

    /// Fails if the packet has fewer than `bits` bits left.
    fn need(&self, bits: u64) -> Run<()> {
        let left = (self.input.len() - self.position) as u64;
        if bits > left { Err(self.parser_error("PacketTooShort")) } else { Ok(()) }
    }

    fn extract(&mut self, ty: Ty, varbit: Option<u64>) -> Run<Value> {
        let types = &self.program.types;
        let fields = match types.structure(ty) {
            Some(info) if info.kind == StructKind::Header => &info.fields,
            _ => return Err(Stop::Failure("only headers can be extracted".into())),
        };
        let mut total = 0;
        for (_, field) in fields {
            total += match types.get(*field) {
                Type::Varbit(most) if varbit.is_some_and(|bits| bits > u64::from(*most)) => {
                    return Err(self.parser_error("HeaderTooShort"));
                }
                Type::Varbit(_) => varbit.unwrap_or(0),
                _ => types.width(*field).unwrap_or(0),
            };
        }
        if varbit.is_some_and(|bits| !bits.is_multiple_of(8)) {
            return Err(self.parser_error("ParserInvalidArgument"));
        }
        self.need(total)?;
        let mut values = Vec::with_capacity(fields.len());
        for (_, field) in fields {
            if let Type::Varbit(_) = types.get(*field) {
                let bits = varbit.unwrap_or(0);
                let value = self.input.read(self.position, bits as usize);
                self.position += bits as usize;
                values.push(Value::Varbit { bits: bits as u32, value });
                continue;
            }
            values.push(self.input.read_value(types, *field, &mut self.position));
        }
        Ok(Value::Header { valid: true, fields: values })
    }
}

/// True if values match a member of a value set.
fn fits(member: &[Match], values: &[Value]) -> bool {
    member.len() == values.len() && member.iter().zip(values).all(|(wanted, value)| wanted.fits(value))
}
