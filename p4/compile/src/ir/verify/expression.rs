//! The rules of places and expressions.

use namehop_p4_lang::syntax::{Binary, StructKind, Unary};
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;

use super::{Check, Fault, Storage, Verifier};
use crate::ir::{Expr, Id, Kind, Place, Register, RegisterId, Step, ValueSetId, Var};

/// Widths of the colour of a meter, of the position in a stack, and of words, in bits.
const COLOUR_BITS: u32 = 8;
const POSITION_BITS: u32 = 32;
const WORD_BITS: u32 = 64;

impl Verifier<'_> {
    pub(super) fn declared(&self, variable: Var) -> Check {
        match self.program.variables.get(variable) {
            Some(_) => Ok(()),
            None => Err(Fault::NoVariable(variable)),
        }
    }

    /// Checks that a variable is a position in the packet.
    pub(super) fn base(&self, variable: Var) -> Check {
        self.only_in(true)?;
        self.declared(variable)?;
        if self.bases.is_some_and(|bases| bases.contains(&variable)) { Ok(()) } else { Err(Fault::NoBase(variable)) }
    }

    /// Checks that a number is that of an object of which there are `count`.
    pub(super) fn known(&self, kind: &'static str, number: usize, count: usize) -> Check {
        if number < count { Ok(()) } else { Err(Fault::NoObject { kind, number }) }
    }

    pub(super) fn register(&self, register: RegisterId) -> Result<&Register, Fault> {
        let found = self.program.registers.get(register);
        found.ok_or(Fault::NoObject { kind: "register", number: register.index() })
    }

    pub(super) fn wrong(&self, what: &'static str, expected: String, found: Storage) -> Fault {
        Fault::Storage { what, expected, found: found.show(self.types) }
    }

    pub(super) fn stores(&self, what: &'static str, ty: Ty, expected: Storage) -> Check {
        let found = self.storage(ty);
        if found == expected { Ok(()) } else { Err(self.wrong(what, expected.show(self.types), found)) }
    }

    /// Checks that two types have the same storage.
    pub(super) fn same(&self, what: &'static str, ty: Ty, expected: Ty) -> Check {
        if ty == expected { Ok(()) } else { self.stores(what, ty, self.storage(expected)) }
    }

    pub(super) fn is_bool(&self, what: &'static str, ty: Ty) -> Check {
        self.stores(what, ty, Storage::Bool)
    }

    pub(super) fn is_integer(&self, what: &'static str, ty: Ty) -> Check {
        match self.storage(ty) {
            Storage::Bits { .. } => Ok(()),
            other => Err(self.wrong(what, "an integer".into(), other)),
        }
    }

    /// Checks that values have a fixed number of bits. Returns it.
    fn is_scalar(&self, what: &'static str, ty: Ty) -> Result<u32, Fault> {
        self.storage(ty).width().ok_or_else(|| self.wrong(what, "bits".into(), self.storage(ty)))
    }

    pub(super) fn has_width(&self, what: &'static str, width: u32, ty: Ty) -> Check {
        let found = self.is_scalar(what, ty)?;
        if found == width { Ok(()) } else { Err(self.wrong(what, format!("{width} bits"), self.storage(ty))) }
    }

    pub(super) fn constant(&self, value: &Value, ty: Ty) -> Check {
        if self.storage(ty).holds(self.types, value) { Ok(()) } else { Err(Fault::Constant(self.types.show(ty))) }
    }

    /// Checks a place and the indices in it.
    pub(super) fn place(&self, place: &Place) -> Check {
        self.declared(place.root)?;
        if self.bases.is_some_and(|bases| bases.contains(&place.root)) {
            return Err(Fault::BaseAsValue(place.root));
        }
        let mut ty = self.program.variables[place.root].ty;
        for step in &place.steps {
            if matches!((step, self.types.get(ty)), (Step::Next, Type::Stack(..))) {
                let position = Storage::Bits { width: POSITION_BITS, signed: false };
                return self.stores("the position in a stack", place.ty, position);
            }
            ty = self.part(ty, step)?;
        }
        if ty == place.ty {
            return Ok(());
        }
        Err(Fault::PlaceType { declared: self.types.show(ty), used: self.types.show(place.ty) })
    }

    /// The type of a part of a value.
    fn part(&self, ty: Ty, step: &Step) -> Result<Ty, Fault> {
        let stripped = self.types.stripped(ty);
        let part = match (step, self.types.get(stripped)) {
            (Step::Field(field), _) => {
                self.types.components(stripped).and_then(|components| components.get(*field).copied())
            }
            (Step::Index(index), Type::Stack(element, _)) => {
                self.expression(index)?;
                self.is_integer("the index", index.ty)?;
                Some(*element)
            }
            (Step::Valid, _) => self.types.is_kind(stripped, StructKind::Header).then_some(Types::BOOL),
            _ => None,
        };
        part.ok_or_else(|| Fault::NoPart(self.types.show(ty)))
    }

    /// Checks an expression and its parts.
    pub(super) fn expression(&self, expr: &Expr) -> Check {
        let mut all = Ok(());
        expr.parts(&mut |part| {
            if all.is_ok() {
                all = self.expression(part);
            }
        });
        all?;
        let word = Storage::Bits { width: WORD_BITS, signed: false };
        match &expr.kind {
            Kind::Const(value) => self.constant(value, expr.ty),
            Kind::Read(place) => {
                self.place(place)?;
                self.same("the value of a place", expr.ty, place.ty)
            }
            Kind::Unary(Unary::Not, inner) => {
                self.is_bool("the operand", inner.ty)?;
                self.is_bool("the result", expr.ty)
            }
            Kind::Unary(_, inner) => {
                self.is_integer("the result", expr.ty)?;
                self.same("the operand", inner.ty, expr.ty)
            }
            Kind::Binary(operator, left, right) => self.binary(*operator, left.ty, right.ty, expr.ty),
            Kind::Choice(condition, yes, no) => {
                self.is_bool("the condition", condition.ty)?;
                self.same("the first choice", yes.ty, expr.ty)?;
                self.same("the second choice", no.ty, expr.ty)
            }
            Kind::Cast(inner) => {
                self.is_scalar("the operand of a cast", inner.ty)?;
                self.is_scalar("the result of a cast", expr.ty).map(drop)
            }
            Kind::Slice(inner, high, low) => {
                self.bits(inner.ty, *high, *low)?;
                self.has_width("the bits", high - low + 1, expr.ty)
            }
            Kind::Insert(base, high, low, part) => {
                self.same("the value around the bits", base.ty, expr.ty)?;
                self.bits(base.ty, *high, *low)?;
                self.has_width("the bits", high - low + 1, part.ty)
            }
            Kind::Parts(parts) => self.parts(parts, expr.ty),
            Kind::Packet(_) => self.is_scalar("bits of the packet", expr.ty).map(drop),
            Kind::Left | Kind::Random => self.stores("the result", expr.ty, word),
            Kind::Length | Kind::Port => self.is_integer("the result", expr.ty),
            Kind::Hash(algorithm) => {
                self.is_integer("the hash algorithm", algorithm.ty)?;
                self.is_integer("the hash", expr.ty)
            }
            Kind::Register(register, index) => {
                self.is_integer("the index", index.ty)?;
                self.same("the value of the register", expr.ty, self.register(*register)?.ty)
            }
            Kind::Meter(meter, index) => {
                self.known("meter", meter.index(), self.program.meters.len())?;
                self.is_integer("the index", index.ty)?;
                self.stores("the colour", expr.ty, Storage::Bits { width: COLOUR_BITS, signed: false })
            }
            Kind::Argument(offset) => self.argument(*offset, expr.ty),
            Kind::Field(base, _) => {
                self.base(*base)?;
                self.is_scalar("bits of the packet", expr.ty).map(drop)
            }
            Kind::Sum(values) => {
                values.iter().try_for_each(|value| self.is_scalar("a value of the sum", value.ty).map(drop))?;
                self.is_integer("the sum", expr.ty)
            }
            Kind::InSet(set, values) => {
                self.in_set(*set, values)?;
                self.is_bool("the result", expr.ty)
            }
        }
    }

    fn binary(&self, operator: Binary, left: Ty, right: Ty, ty: Ty) -> Check {
        match operator {
            Binary::And | Binary::Or => {
                self.is_bool("the left operand", left)?;
                self.is_bool("the right operand", right)?;
                self.is_bool("the result", ty)
            }
            Binary::Equal | Binary::NotEqual => {
                self.same("the right operand", right, left)?;
                self.is_bool("the result", ty)
            }
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                self.is_integer("the left operand", left)?;
                self.same("the right operand", right, left)?;
                self.is_bool("the result", ty)
            }
            Binary::Concat => {
                let width = self.is_scalar("the left operand", left)? + self.is_scalar("the right operand", right)?;
                self.has_width("the result", width, ty)
            }
            Binary::Shl | Binary::Shr => {
                self.is_integer("the right operand", right)?;
                self.is_integer("the left operand", left)?;
                self.same("the left operand", left, ty)
            }
            _ => {
                self.is_integer("the result", ty)?;
                self.same("the left operand", left, ty)?;
                self.same("the right operand", right, ty)
            }
        }
    }

    /// Checks that values of a type have these bits.
    fn bits(&self, ty: Ty, high: u32, low: u32) -> Check {
        let width = self.is_scalar("the value around the bits", ty)?;
        if low <= high && high < width { Ok(()) } else { Err(Fault::NoBits { high, low, width }) }
    }

    fn parts(&self, parts: &[Expr], ty: Ty) -> Check {
        let stripped = self.types.stripped(ty);
        let components = match self.types.get(stripped) {
            Type::Stack(element, count) => vec![*element; *count as usize],
            _ => self.types.components(stripped).ok_or_else(|| Fault::NoPart(self.types.show(ty)))?,
        };
        if components.len() != parts.len() {
            return Err(Fault::Count { what: "parts", expected: components.len(), found: parts.len() });
        }
        parts.iter().zip(components).try_for_each(|(part, component)| self.same("a part", part.ty, component))
    }

    fn argument(&self, offset: u64, ty: Ty) -> Check {
        let width = self.is_scalar("action data", ty)?;
        let Some((table, action)) = self.action else { return Err(Fault::NoAction) };
        let bits = self.program.tables[table].bits_of(action);
        let end = offset + u64::from(width);
        if end <= u64::from(bits) { Ok(()) } else { Err(Fault::ActionData { end, bits }) }
    }

    fn in_set(&self, set: ValueSetId, values: &[Expr]) -> Check {
        let found = self.program.value_sets.get(set);
        let fields = &found.ok_or(Fault::NoObject { kind: "value set", number: set.index() })?.fields;
        if fields.len() != values.len() {
            return Err(Fault::Count { what: "values of the set", expected: fields.len(), found: values.len() });
        }
        let pairs = fields.iter().zip(values);
        pairs.into_iter().try_for_each(|(field, value)| self.has_width("a value of the set", field.width, value.ty))
    }
}
