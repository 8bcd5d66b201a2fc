//! Reading from packets, and writing to packets and data lists.

use namehop_p4_lang::syntax::{Binary, StructKind};
use namehop_p4_lang::tree::Argument;
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;

use super::place::Target;
use super::{Lower, Lowerer};
use crate::ir::{Expr, Kind, Place, Sink, Statement, Step};

impl<'p> Lowerer<'p> {
    fn word_binary(&self, operator: Binary, left: Expr, right: Expr) -> Expr {
        self.binary(operator, left, right, self.common.word)
    }

    /// Ends the parser with an error if a condition holds.
    pub(super) fn reject_if(&mut self, condition: Expr, error: &str) -> Lower<()> {
        let reject = self.list(|lowerer| lowerer.reject(error))?;
        self.push(Statement::If(condition, reject, Vec::new()))
    }

    /// Ends the parser with an error if the packet has fewer than `bits` bits left.
    fn need(&mut self, bits: Expr) -> Lower<()> {
        let left = Expr { kind: Kind::Left, ty: self.common.word };
        let short = self.binary(Binary::Less, left, bits, Types::BOOL);
        self.reject_if(short, "PacketTooShort")
    }

    fn whole_bytes(&mut self, bits: Expr) -> Lower<()> {
        let rest = self.word_binary(Binary::BitAnd, bits, self.word(7));
        let odd = self.binary(Binary::NotEqual, rest, self.word(0), Types::BOOL);
        self.reject_if(odd, "ParserInvalidArgument")
    }

    pub(super) fn packet_in(&mut self, name: &str, arguments: &'p [Argument], ty: Ty) -> Lower<Option<Expr>> {
        let first = arguments.first().and_then(|argument| argument.value.as_ref());
        match name {
            "extract" => {
                let bits = match arguments.get(1).and_then(|argument| argument.value.as_ref()) {
                    Some(bits) => {
                        let bits = self.expression(bits)?;
                        let bits = Expr { kind: Kind::Cast(Box::new(bits)), ty: self.common.word };
                        Some(self.keep(bits)?)
                    }
                    None => None,
                };
                let ty = arguments.first().map_or(ty, |argument| argument.ty);
                let target = match first {
                    Some(target) => Some(self.target(target, false)?),
                    None => None,
                };
                self.extract(ty, bits, target)?;
                Ok(None)
            }
            "lookahead" => {
                let width = self.types().width(ty).unwrap_or(0);
                self.need(self.word(width))?;
                let place = self.temporary("ahead", ty);
                self.set(place.clone(), self.zero(ty))?;
                self.read_value(&place, &mut 0)?;
                Ok(Some(Expr::read(place)))
            }
            "advance" => {
                let Some(bits) = first else { return self.refuse("advance needs a number of bits") };
                let bits = self.expression(bits)?;
                let bits = self.keep(Expr { kind: Kind::Cast(Box::new(bits)), ty: self.common.word })?;
                self.whole_bytes(bits.clone())?;
                self.need(bits.clone())?;
                self.push(Statement::Advance(bits))?;
                Ok(None)
            }
            "length" => Ok(Some(Expr { kind: Kind::Length, ty })),
            _ => self.refuse(format!("packet_in has no method {name}")),
        }
    }

    fn extract(&mut self, ty: Ty, varbit: Option<Expr>, target: Option<Target>) -> Lower<()> {
        let types = self.types();
        let fields = match types.structure(ty) {
            Some(info) if info.kind == StructKind::Header => &info.fields,
            _ => return self.refuse("only headers can be extracted"),
        };
        let mut fixed = 0;
        let mut variable = None;
        for (place, (_, field)) in fields.iter().enumerate() {
            match types.get(*field) {
                Type::Varbit(most) => variable = Some((place, u64::from(*most))),
                _ => fixed += types.width(*field).unwrap_or(0),
            }
        }
        let bits = varbit.clone().unwrap_or_else(|| self.word(0));
        if let (Some((_, most)), Some(bits)) = (variable, &varbit) {
            let long = self.binary(Binary::Greater, bits.clone(), self.word(most), Types::BOOL);
            self.reject_if(long, "HeaderTooShort")?;
        }
        if let Some(bits) = &varbit {
            self.whole_bytes(bits.clone())?;
        }
        let total = match variable {
            Some(_) => self.word_binary(Binary::Add, bits.clone(), self.word(fixed)),
            None => self.word(fixed),
        };
        self.need(total)?;
        // The packet is read even if the target does not exist.
        let direct = target.as_ref().filter(|target| {
            let constant = |step: &Step| !matches!(step, Step::Index(index) if !matches!(index.kind, Kind::Const(_)));
            target.place.steps.iter().all(constant)
        });
        let header = match direct {
            Some(target) => target.place.clone(),
            None => self.temporary("header", ty),
        };
        let mut offset = 0;
        for (number, (_, field)) in fields.iter().enumerate() {
            let place = header.step(Step::Field(number), *field);
            if variable.is_some_and(|(variable, _)| variable == number) {
                if offset > 0 {
                    self.push(Statement::Advance(self.word(offset)))?;
                    offset = 0;
                }
                self.push(Statement::ReadVarbit(place, bits.clone()))?;
            } else {
                self.read_value(&place, &mut offset)?;
            }
        }
        if offset > 0 {
            self.push(Statement::Advance(self.word(offset)))?;
        }
        self.set(header.step(Step::Valid, Types::BOOL), self.truth(true))?;
        let Some(target) = target else { return Ok(()) };
        if header == target.place {
            self.only_valid(&target)?;
        } else {
            self.store(&target, Expr::read(header))?;
        }
        if let Some(stack) = &target.next_of {
            let next = stack.step(Step::Next, self.common.index);
            let more = self.binary(Binary::Add, Expr::read(next.clone()), self.index(1), self.common.index);
            self.set(next, more)?;
        }
        Ok(())
    }

    /// Reads a value at `offset` bits from the parser position. Headers become valid.
    fn read_value(&mut self, place: &Place, offset: &mut u64) -> Lower<()> {
        let types = self.types();
        let ty = types.stripped(place.ty);
        match types.get(ty) {
            Type::Stack(element, count) => {
                for number in 0..u64::from(*count) {
                    let step = Step::Index(Box::new(self.index(number)));
                    self.read_value(&place.step(step, *element), offset)?;
                }
                let next = place.step(Step::Next, self.common.index);
                return self.set(next, self.index(u64::from(*count)));
            }
            Type::Bool | Type::Bits { .. } | Type::Enum(_) => {}
            _ => {
                let Some(components) = types.components(ty) else { return Ok(()) };
                for (number, component) in components.into_iter().enumerate() {
                    self.read_value(&place.step(Step::Field(number), component), offset)?;
                }
                if types.is_kind(ty, StructKind::Header) {
                    self.set(place.step(Step::Valid, Types::BOOL), self.truth(true))?;
                }
                return Ok(());
            }
        }
        let Some(width) = types.width(place.ty) else { return Ok(()) };
        let value = Expr { kind: Kind::Packet(*offset), ty: place.ty };
        *offset += width;
        self.set(place.clone(), value)
    }

    /// Appends a value; headers only if they are valid.
    pub(super) fn append(&mut self, sink: Sink, value: Expr) -> Lower<()> {
        let types = self.types();
        let ty = types.stripped(value.ty);
        match types.get(ty) {
            Type::Stack(element, count) => {
                let (element, count) = (*element, u64::from(*count));
                let place = self.as_place(value)?;
                for number in 0..count {
                    let step = Step::Index(Box::new(self.index(number)));
                    self.append(sink, Expr::read(place.step(step, element)))?;
                }
                return Ok(());
            }
            Type::Bool | Type::Bits { .. } | Type::Varbit(_) => return self.push(Statement::Append(sink, value)),
            Type::Enum(_) | Type::Error | Type::List(_) => {
                return if types.representation(ty).is_some() {
                    self.push(Statement::Append(sink, value))
                } else {
                    Ok(())
                };
            }
            Type::Struct(_) | Type::Tuple(_) | Type::Record(_) => {}
            _ => return self.refuse(format!("a value of type {} has no bits", types.show(value.ty))),
        }
        let components = types.components(ty).unwrap_or_default();
        if types.is_kind(ty, StructKind::Header) {
            let place = self.as_place(value)?;
            let valid = self.validity(&place);
            let fields = self.list(|lowerer| {
                for (number, component) in components.into_iter().enumerate() {
                    lowerer.append(sink, Expr::read(place.step(Step::Field(number), component)))?;
                }
                Ok(())
            })?;
            return self.push(Statement::If(valid, fields, Vec::new()));
        }
        if let Kind::Const(Value::None) = value.kind {
            return Ok(());
        }
        for (number, component) in components.into_iter().enumerate() {
            let part = self.component(value.clone(), number, component)?;
            self.append(sink, part)?;
        }
        Ok(())
    }
}
