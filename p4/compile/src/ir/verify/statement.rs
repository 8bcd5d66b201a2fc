//! The rules of single statements.

use namehop_p4_lang::types::Types;

use super::{Check, Fault, Storage, Verifier};
use crate::ir::{Apply, Cipher, Emit, Id, Kind, Place, Resume, Sink, Statement, Var};

/// Widths of the arguments of a cipher, in bits.
const OFFSET_BITS: u32 = 64;
const BLOCK_BITS: u32 = 128;
/// Width of the number of an action, in bits.
const ACTION_BITS: u32 = 8;

const UNSIGNED: fn(u32) -> Storage = |width| Storage::Bits { width, signed: false };

impl Verifier<'_> {
    /// Checks a statement without the lists in it.
    pub(super) fn statement(&self, statement: &Statement) -> Check {
        let mut all = Ok(());
        statement.expressions(&mut |expr| {
            if all.is_ok() {
                all = self.expression(expr);
            }
        });
        all?;
        match statement {
            Statement::Set(place, value) => {
                self.place(place)?;
                self.same("the assigned value", value.ty, place.ty)
            }
            Statement::If(condition, ..) => self.is_bool("the condition", condition.ty),
            Statement::Error(error) => {
                self.only_in(false)?;
                self.same("the parser error", error.ty, Types::ERROR)
            }
            Statement::Advance(bits) => self.is_integer("the number of bits", bits.ty),
            Statement::ReadVarbit(place, bits) => {
                self.place(place)?;
                self.is_integer("the number of bits", bits.ty)?;
                match self.storage(place.ty) {
                    Storage::Varbit(_) => Ok(()),
                    other => Err(self.wrong("the field of variable length", "varbit".into(), other)),
                }
            }
            Statement::Append(sink, value) => match self.storage(value.ty) {
                Storage::Bool | Storage::Bits { .. } => Ok(()),
                Storage::Varbit(_) if *sink == Sink::Data || !self.is_fused() => Ok(()),
                other => Err(self.wrong("the appended value", "bits".into(), other)),
            },
            Statement::Digest(digest) => self.known("digest", digest.index(), self.program.digests.len()),
            Statement::ChecksumError => self.only_in(false),
            Statement::Request { value, list, .. } => {
                self.only_in(false)?;
                self.is_integer("the value of the request", value.ty)?;
                list.as_ref().map_or(Ok(()), |list| self.is_integer("the field list", list.ty))
            }
            Statement::WriteRegister(register, index, value) => {
                self.is_integer("the index", index.ty)?;
                self.same("the value of the register", value.ty, self.register(*register)?.ty)
            }
            Statement::Count(counter, index) => {
                self.known("counter", counter.index(), self.program.counters.len())?;
                self.is_integer("the index", index.ty)
            }
            Statement::Apply(apply) => self.apply(apply),
            Statement::Cipher(cipher) => self.cipher(cipher),
            Statement::Locate(base, _) => self.base(*base),
            Statement::Barrier(kept) => {
                self.only_in(true)?;
                kept.iter().try_for_each(|variable| self.declared(*variable))
            }
            Statement::Drop => self.only_in(true),
            Statement::Send(port, headers) => {
                self.only_in(true)?;
                self.is_integer("the port", port.ty)?;
                headers.iter().flatten().try_for_each(|header| self.emit(header))
            }
            Statement::Block(..)
            | Statement::Loop(_)
            | Statement::Jump(_)
            | Statement::Machine { .. }
            | Statement::Goto { .. }
            | Statement::Lose
            | Statement::BeginData
            | Statement::AppendPayload => Ok(()),
        }
    }

    fn apply(&self, apply: &Apply) -> Check {
        let Some(table) = self.program.tables.get(apply.table) else {
            return Err(Fault::NoObject { kind: "table", number: apply.table.index() });
        };
        let count = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(Fault::Count { what, expected, found }) }
        };
        count("keys of the lookup", table.keys.len(), apply.keys.len())?;
        count("actions of the lookup", table.actions.len(), apply.actions.len())?;
        for (key, value) in table.keys.iter().zip(&apply.keys) {
            self.has_width("a key", key.width, value.ty)?;
        }
        if apply.hashed > table.key_words() {
            let (expected, found) = (table.key_words() as usize, apply.hashed as usize);
            return Err(Fault::Count { what: "hashed words of the key", expected, found });
        }
        self.variable_stores(apply.hit, "the result of the lookup", Storage::Bool)?;
        self.variable_stores(apply.chosen, "the number of the action", UNSIGNED(ACTION_BITS))?;
        self.resume(&apply.resume)
    }

    fn variable_stores(&self, variable: Option<Var>, what: &'static str, expected: Storage) -> Check {
        let Some(variable) = variable else { return Ok(()) };
        self.declared(variable)?;
        self.stores(what, self.program.variables[variable].ty, expected)
    }

    fn cipher(&self, cipher: &Cipher) -> Check {
        self.stores("the offset", cipher.offset.ty, UNSIGNED(OFFSET_BITS))?;
        self.stores("the key", cipher.key.ty, UNSIGNED(BLOCK_BITS))?;
        self.stores("the initialization vector", cipher.iv.ty, UNSIGNED(BLOCK_BITS))?;
        self.resume(&cipher.resume)
    }

    fn resume(&self, resume: &Resume) -> Check {
        resume.kept.iter().try_for_each(|variable| self.declared(*variable))?;
        resume.located.iter().try_for_each(|(base, _)| self.base(*base))?;
        for (variable, value) in &resume.known {
            self.declared(*variable)?;
            self.constant(value, self.program.variables[*variable].ty)?;
        }
        for (variable, field) in &resume.fields {
            self.place(&Place::variable(*variable, field.ty))?;
            self.expression(field)?;
            if !matches!(field.kind, Kind::Field(..)) {
                return Err(self.wrong("the value of a field", "bits of the packet".into(), self.storage(field.ty)));
            }
        }
        Ok(())
    }

    fn emit(&self, header: &Emit) -> Check {
        header.valid.as_ref().map_or(Ok(()), |valid| self.is_bool("the validity of a header", valid.ty))?;
        header.base.map_or(Ok(()), |base| self.base(base))?;
        header.fields.iter().try_for_each(|field| self.has_width("a field", field.width, field.value.ty))
    }

    /// Checks that the program is of one part, or of six parts.
    pub(super) fn only_in(&self, fused: bool) -> Check {
        if self.is_fused() == fused {
            Ok(())
        } else {
            Err(Fault::WrongForm(if fused { "one part" } else { "six parts" }))
        }
    }
}
