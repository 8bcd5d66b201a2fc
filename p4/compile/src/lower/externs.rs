//! The externs of core.p4 and v1model.p4.

use namehop_p4_lang::interpret::Object;
use namehop_p4_lang::prelude;
use namehop_p4_lang::syntax::{Binary, Direction};
use namehop_p4_lang::tree::{self, Argument};
use namehop_p4_lang::types::{Ty, Types};
use namehop_p4_lang::value::Value;

use super::{Lower, Lowerer};
use crate::description::MAX_DIGEST_BYTES;
use crate::ir::{self, Expr, Kind, Place, Request, Shape, Sink, Statement, Step};

/// The egress port that drops packets.
const DROP_PORT: u64 = 511;
/// `MeterType.bytes`
const METER_BYTES: u64 = 1;

impl<'p> Lowerer<'p> {
    /// Lists registers, counters and meters with their sizes.
    pub(super) fn state_of_instances(&mut self) -> Result<(), String> {
        for (number, object) in self.switch.objects.iter().enumerate() {
            let path = || self.paths.get(&number).cloned().unwrap_or_else(|| format!("instance_{number}"));
            match object {
                Object::Register { element, values } => {
                    let register = ir::Register { path: path(), object: number, ty: *element, size: values.len() };
                    self.registers.insert(number, self.register_list.push(register));
                }
                Object::Counter(cells) if !cells.is_empty() => {
                    let counter = ir::Counter { path: path(), object: number, size: cells.len(), table: None };
                    self.counters.insert(number, self.counter_list.push(counter));
                }
                Object::Meter(colours) if !colours.is_empty() => {
                    let bytes = self.switch.units.get(&number) == Some(&METER_BYTES);
                    let meter = ir::Meter { path: path(), size: colours.len(), bytes, table: None };
                    self.meters.insert(number, self.meter_list.push(meter));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The current values of all arguments, including arguments that are written to.
    fn inputs(&mut self, arguments: &'p [Argument]) -> Lower<Vec<Option<Expr>>> {
        let mut list = Vec::new();
        for argument in arguments {
            let out = argument.direction == Direction::Out;
            list.push(match &argument.value {
                // Skip arguments that are only written to, if reading them has no side effect.
                Some(value) if out && !tree::has_effects(value) => None,
                Some(value) if matches!(value.kind, tree::ExprKind::Const(Value::Text(_))) => None,
                Some(value) => {
                    let value = self.expression(value)?;
                    Some(if arguments.len() > 1 { self.keep(value)? } else { value })
                }
                None => None,
            });
        }
        Ok(list)
    }

    fn write_argument(&mut self, arguments: &'p [Argument], place: usize, value: Expr) -> Lower<()> {
        let Some(target) = arguments.get(place).and_then(|argument| argument.value.as_ref()) else { return Ok(()) };
        let target = self.target(target, false)?;
        let value = self.cast(value, target.ty)?;
        self.store(&target, value)
    }

    fn hash(&mut self, data: Expr, algorithm: Expr, payload: bool, ty: Ty) -> Lower<Expr> {
        self.push(Statement::BeginData)?;
        self.append(Sink::Data, data)?;
        if payload {
            self.push(Statement::AppendPayload)?;
        }
        Ok(Expr { kind: Kind::Hash(Box::new(algorithm)), ty })
    }

    pub(super) fn extern_function(&mut self, name: &str, arguments: &'p [Argument], ty: Ty) -> Lower<Option<Expr>> {
        let mut inputs = self.inputs(arguments)?;
        let refused = format!("the function {name} differs from that of {}", prelude::home(name));
        let least = match name {
            "hash" => 5,
            "verify_checksum" | "update_checksum" | "verify_checksum_with_payload" | "update_checksum_with_payload" => {
                4
            }
            "random" | "aes_cbc_encrypt" | "aes_cbc_decrypt" => 3,
            "verify" | "digest" => 2,
            "clone" | "clone3" => 2,
            "clone_preserving_field_list" => 3,
            "assert" | "assume" | "truncate" => 1,
            "resubmit_preserving_field_list" | "recirculate_preserving_field_list" => 1,
            _ => 0,
        };
        if arguments.len() < least {
            return self.refuse(refused);
        }
        let mut take = |place: usize| inputs.get_mut(place).and_then(Option::take);
        macro_rules! input {
            ($place:expr) => {
                match take($place) {
                    Some(value) => value,
                    None => return self.refuse(refused),
                }
            };
        }
        match name {
            "verify" => {
                let (holds, error) = (input!(0), input!(1));
                let reject = self.list(|lowerer| lowerer.reject_with(error))?;
                self.push(Statement::If(holds, Vec::new(), reject))?;
            }
            "assert" | "assume" => {
                let holds = input!(0);
                self.push(Statement::If(holds, Vec::new(), vec![Statement::Lose]))?;
            }
            "mark_to_drop" => {
                if let Some(target) = arguments.first().and_then(|argument| argument.value.as_ref()) {
                    let target = self.target(target, false)?;
                    self.set_standard(&target.place, "egress_spec", DROP_PORT)?;
                    self.set_standard(&target.place, "mcast_grp", 0)?;
                }
            }
            "hash" => {
                let (algorithm, base, data, max) = (input!(1), input!(2), input!(3), input!(4));
                let ty = arguments[0].ty;
                let result = self.hash_in_range(algorithm, base, data, max)?;
                let result = self.cast(result, ty)?;
                self.write_argument(arguments, 0, result)?;
            }
            "verify_checksum" | "update_checksum" | "verify_checksum_with_payload" | "update_checksum_with_payload" => {
                let (condition, data, before, algorithm) = (input!(0), input!(1), input!(2), input!(3));
                let payload = name.ends_with("payload");
                let then = self.list(|lowerer| {
                    let result = lowerer.hash(data, algorithm, payload, before.ty)?;
                    if name.starts_with("update") {
                        return lowerer.write_argument(arguments, 2, result);
                    }
                    let differs = lowerer.binary(Binary::NotEqual, result, before, Types::BOOL);
                    lowerer.push(Statement::If(differs, vec![Statement::ChecksumError], Vec::new()))
                })?;
                self.push(Statement::If(condition, then, Vec::new()))?;
            }
            "random" => {
                let (low, high) = (input!(1), input!(2));
                let ty = arguments[0].ty;
                if self.types().representation(ty).is_none_or(|(width, signed)| width > 63 || signed) {
                    return self.refuse("random numbers that are signed or have more than 63 bits cannot be compiled");
                }
                let word = self.common.word;
                let (low, high) = (self.cast(low, word)?, self.cast(high, word)?);
                let number = self.keep(Expr { kind: Kind::Random, ty: word })?;
                let span = self.binary(Binary::Sub, high.clone(), low.clone(), word);
                let count = self.binary(Binary::Add, span, self.word(1), word);
                let some = self.binary(Binary::GreaterEqual, high, low.clone(), Types::BOOL);
                let within = self.binary(Binary::Mod, number, count, word);
                let sum = self.binary(Binary::Add, low.clone(), within, word);
                let kind = Kind::Choice(Box::new(some), Box::new(sum), Box::new(low));
                self.write_argument(arguments, 0, Expr { kind, ty: word })?;
            }
            "clone" | "clone3" => {
                let value = input!(1);
                self.request(Request::Clone, value, None)?;
            }
            "clone_preserving_field_list" => {
                let (value, list) = (input!(1), input!(2));
                self.request(Request::Clone, value, Some(list))?;
            }
            "resubmit" => self.request(Request::Resubmit, self.word(0), None)?,
            "recirculate" => self.request(Request::Recirculate, self.word(0), None)?,
            "resubmit_preserving_field_list" => {
                let list = input!(0);
                self.request(Request::Resubmit, self.word(0), Some(list))?;
            }
            "recirculate_preserving_field_list" => {
                let list = input!(0);
                self.request(Request::Recirculate, self.word(0), Some(list))?;
            }
            "aes_cbc_encrypt" | "aes_cbc_decrypt" => {
                let (offset, key, iv) = (input!(0), input!(1), input!(2));
                self.cipher(name, offset, key, iv)?;
            }
            "truncate" => {
                let value = input!(0);
                self.request(Request::Truncate, value, None)?;
            }
            "static_assert" => return Ok(Some(self.truth(true))),
            "digest" => self.digest(input!(1))?,
            "log_msg" => drop(self.notes.insert("calls of log_msg do nothing in compiled code".into())),
            _ => {
                self.notes.insert(format!("the extern function {name} is unknown; calls of it do nothing"));
                return Ok((ty != Types::VOID).then(|| self.zero(ty)));
            }
        }
        Ok(None)
    }

    /// Reports data to the control plane; all reports of one type share one name.
    fn digest(&mut self, data: Expr) -> Lower<()> {
        let types = self.types();
        let Some(shape) = Shape::of(types, data.ty).filter(|shape| shape.bits() <= u64::from(MAX_DIGEST_BYTES) * 8)
        else {
            let ty = types.show(data.ty);
            let why = format!("only integers and structs of them, of at most {MAX_DIGEST_BYTES} bytes, are reported");
            self.notes.insert(format!("digests of type {ty} do nothing in compiled code: {why}"));
            return Ok(());
        };
        let known = self.digests.find(|digest| digest.ty == data.ty);
        let number = known.unwrap_or_else(|| {
            let named = types.structure(data.ty).map(|info| info.name.to_string());
            let name = named.unwrap_or_else(|| format!("digest_{}", self.digests.len()));
            self.digests.push(ir::Digest { name, ty: data.ty, shape })
        });
        self.push(Statement::BeginData)?;
        self.append(Sink::Data, data)?;
        self.push(Statement::Digest(number))
    }

    fn request(&mut self, request: Request, value: Expr, list: Option<Expr>) -> Lower<()> {
        self.push(Statement::Request { request, value, list })
    }

    /// `base + hash % max`, in a type that is wide enough for the result.
    fn hash_in_range(&mut self, algorithm: Expr, base: Expr, data: Expr, max: Expr) -> Lower<Expr> {
        let width = |ty| self.types().representation(ty).map_or(64, |(width, _)| u64::from(width));
        let identity = !matches!(&algorithm.kind, Kind::Const(value) if value.number() != 5);
        let bits = if identity { self.types().width(data.ty).unwrap_or(64) } else { 32 };
        let wide = bits.max(width(base.ty)).max(width(max.ty));
        // One of a few widths that were prepared.
        let Some((_, ty)) = self.common.wide.iter().find(|(width, _)| u64::from(*width) > wide) else {
            return self.refuse(format!("a hash with numbers of {wide} bits cannot be compiled"));
        };
        let ty = *ty;
        let (base, max) = (self.cast(base, ty)?, self.cast(max, ty)?);
        let hash = self.hash(data, algorithm, false, ty)?;
        let zero = self.number(0, ty);
        let none = self.binary(Binary::Equal, max.clone(), zero, Types::BOOL);
        let within = self.binary(Binary::Mod, hash, max, ty);
        let sum = self.binary(Binary::Add, base.clone(), within, ty);
        Ok(Expr { kind: Kind::Choice(Box::new(none), Box::new(base), Box::new(sum)), ty })
    }

    fn set_standard(&mut self, standard: &Place, name: &str, value: u64) -> Lower<()> {
        let fields = self.types().structure(standard.ty).map(|info| &info.fields);
        let Some((place, ty)) = fields.and_then(|fields| {
            fields.iter().enumerate().find(|(_, (field, _))| &**field == name).map(|(place, (_, ty))| (place, *ty))
        }) else {
            return Ok(());
        };
        self.set(standard.step(Step::Field(place), ty), self.number(value, ty))
    }

    pub(super) fn method(
        &mut self,
        object: &'p tree::Expr,
        class: &str,
        name: &str,
        arguments: &'p [Argument],
        ty: Ty,
    ) -> Lower<Option<Expr>> {
        match class {
            "packet_in" => return self.packet_in(name, arguments, ty),
            "packet_out" => {
                if let Some(value) = arguments.first().and_then(|argument| argument.value.as_ref()) {
                    let value = self.expression(value)?;
                    self.append(Sink::Packet, value)?;
                }
                return Ok(None);
            }
            "Checksum16" => {
                let Some(value) = arguments.first().and_then(|argument| argument.value.as_ref()) else {
                    return self.refuse("Checksum16.get needs data");
                };
                let value = self.expression(value)?;
                let algorithm = self.number(6, self.common.word);
                let result = self.hash(value, algorithm, false, ty)?;
                return Ok(Some(self.keep(result)?));
            }
            _ => {}
        }
        let mut inputs = self.inputs(arguments)?;
        let object = self.object(object)?;
        let mut take = |place: usize| inputs.get_mut(place).and_then(Option::take);
        match (&self.switch.objects[object], name) {
            (Object::Register { .. }, "read") => {
                let register = self.registers[&object];
                let Some(index) = take(1) else { return self.refuse("reading a register needs an index") };
                let element = self.register_list[register].ty;
                let value = Expr { kind: Kind::Register(register, Box::new(index)), ty: element };
                self.write_argument(arguments, 0, value)?;
            }
            (Object::Register { .. }, "write") => {
                let register = self.registers[&object];
                let (Some(index), Some(value)) = (take(0), take(1)) else {
                    return self.refuse("writing a register needs an index");
                };
                let value = self.cast(value, self.register_list[register].ty)?;
                self.push(Statement::WriteRegister(register, index, value))?;
            }
            // Does nothing: every packet that matches an entry is counted anyway, as in the behavioural model.
            (Object::Counter(_), "count") if arguments.is_empty() => {}
            (Object::Counter(_), "count") => {
                if let Some(counter) = self.counters.get(&object).copied() {
                    let index = take(0).unwrap_or_else(|| self.word(0));
                    self.push(Statement::Count(counter, index))?;
                }
            }
            (Object::Meter(_), "execute_meter") if self.meters.contains_key(&object) => {
                let meter = self.meters[&object];
                let Some(index) = take(0) else { return self.refuse("executing a meter needs an index") };
                let kind = Kind::Meter(meter, Box::new(index));
                let colour = self.keep(Expr { kind, ty: self.common.byte })?;
                self.write_argument(arguments, 1, colour)?;
            }
            (Object::Meter(_), "read") if self.colors.contains_key(&object) => {
                let color = self.colors[&object].clone();
                self.write_argument(arguments, 0, color)?;
            }
            (Object::Meter(_), "execute_meter" | "read") => {
                // Meters without cells always give green, which is 0.
                let place = usize::from(name == "execute_meter");
                if let Some(argument) = arguments.get(place) {
                    let green = self.zero(argument.ty);
                    self.write_argument(arguments, place, green)?;
                }
            }
            _ => {
                self.notes.insert(format!("the method {class}.{name} is unknown; calls of it do nothing"));
                return Ok((ty != Types::VOID).then(|| self.zero(ty)));
            }
        }
        Ok(None)
    }
}
