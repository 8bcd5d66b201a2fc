//! The externs of core.p4 and v1model.p4.

use std::sync::Arc;

use num_bigint::BigInt;

use super::bits::Bits;
use super::{Frame, Object, Run, Stop, Switch, hash};
use crate::prelude;
use crate::tree::{Argument, Call};
use crate::types::Ty;
use crate::value::{self, Value};

/// The egress port that drops packets.
pub const DROP_PORT: u32 = 511;

impl<'p> Switch<'p> {
    fn input_value(&mut self, frame: &mut Frame, arguments: &'p [Argument], place: usize) -> Run<Value> {
        match arguments.get(place).and_then(|argument| argument.value.as_ref()) {
            Some(value) => self.evaluate(frame, value),
            None => Ok(Value::None),
        }
    }

    fn output(&mut self, frame: &mut Frame, arguments: &'p [Argument], place: usize, value: Value) -> Run<()> {
        if let Some(target) = arguments.get(place).and_then(|argument| argument.value.as_ref()) {
            let place = self.place(frame, target)?;
            self.write(frame, &place, value);
        }
        Ok(())
    }

    /// An integer as a value of the given type.
    fn as_type(&self, number: &BigInt, ty: Ty) -> Value {
        match self.program.types.representation(ty) {
            Some((width, signed)) => Value::Int(value::wrap(number, width, signed)),
            None => Value::Int(number.clone()),
        }
    }

    fn data(&self, value: &Value, ty: Ty) -> Bits {
        let mut bits = Bits::default();
        bits.push_value(&self.program.types, value, ty);
        bits
    }

    /// The values of all arguments, including arguments that are only written to.
    fn inputs(&mut self, frame: &mut Frame, arguments: &'p [Argument]) -> Run<Vec<Value>> {
        (0..arguments.len()).map(|place| self.input_value(frame, arguments, place)).collect()
    }

    pub(super) fn extern_function(&mut self, frame: &mut Frame, name: &Arc<str>, call: &'p Call) -> Run<Value> {
        let arguments = &call.arguments;
        let inputs = self.inputs(frame, arguments)?;
        let truth = |place: usize| inputs.get(place).is_some_and(Value::truth);
        let number = |place: usize| inputs.get(place).map_or(0, Value::number);
        // A program may declare its own function with such a name.
        let least = match &**name {
            "hash" => 5,
            "verify_checksum" | "update_checksum" | "verify_checksum_with_payload" | "update_checksum_with_payload" => {
                4
            }
            "random" => 3,
            "digest" => 2,
            "aes_cbc_encrypt" | "aes_cbc_decrypt" => 3,
            _ => 0,
        };
        if arguments.len() < least {
            return Err(Stop::Failure(format!("the function {name} differs from that of {}", prelude::home(name))));
        }
        match &**name {
            "verify" => {
                if !truth(0) {
                    return Err(Stop::Reject(number(1) as u32));
                }
            }
            "mark_to_drop" => {
                if let Some(Value::Struct(fields)) = inputs.first() {
                    let mut fields = fields.clone();
                    self.set_field(&mut fields, "egress_spec", DROP_PORT.into());
                    self.set_field(&mut fields, "mcast_grp", 0.into());
                    self.output(frame, arguments, 0, Value::Struct(fields))?;
                }
            }
            "hash" => {
                let data = self.data(&inputs[3], arguments[3].ty);
                let base = inputs[2].int();
                let max = inputs[4].int();
                let hash = hash::hash(number(1) as u32, &data);
                let result = if max == BigInt::from(0) { base } else { base + hash % max };
                let result = self.as_type(&result, arguments[0].ty);
                self.output(frame, arguments, 0, result)?;
            }
            "verify_checksum" | "update_checksum" | "verify_checksum_with_payload" | "update_checksum_with_payload" => {
                if !truth(0) {
                    return Ok(Value::None);
                }
                let mut data = self.data(&inputs[1], arguments[1].ty);
                if name.ends_with("payload") {
                    data.append(&self.input.clone(), self.position);
                }
                let result = hash::hash(number(3) as u32, &data);
                let result = self.as_type(&result, arguments[2].ty);
                if name.starts_with("update") {
                    self.output(frame, arguments, 2, result)?;
                } else if result != inputs[2] {
                    self.checksum_error = true;
                }
            }
            "random" => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let (low, high) = (inputs[1].int(), inputs[2].int());
                let count = &high - &low + 1;
                let result = if count > BigInt::from(0) { low + BigInt::from(self.random) % count } else { low };
                let result = self.as_type(&result, arguments[0].ty);
                self.output(frame, arguments, 0, result)?;
            }
            "clone" | "clone3" => self.requests.clone = Some((number(1), None)),
            "clone_preserving_field_list" => self.requests.clone = Some((number(1), Some(number(2)))),
            "resubmit" => self.requests.resubmit = Some(None),
            "resubmit_preserving_field_list" => self.requests.resubmit = Some(Some(number(0))),
            "recirculate" => self.requests.recirculate = Some(None),
            "recirculate_preserving_field_list" => self.requests.recirculate = Some(Some(number(0))),
            "truncate" => self.requests.truncate = Some(number(0)),
            "aes_cbc_encrypt" | "aes_cbc_decrypt" => {
                self.cipher(name, number(0), &inputs[1].int(), &inputs[2].int())?;
            }
            "assert" | "assume" => {
                if !truth(0) {
                    return Err(Stop::Failure(format!("{name}: the condition does not hold")));
                }
            }
            "digest" => self.note(format!("digest to {}: {}", number(0), show(&inputs[1]))),
            "log_msg" => {
                let mut text = inputs.first().map_or(String::new(), show);
                if let Some(Value::Struct(parts)) = inputs.get(1) {
                    for part in parts {
                        text = text.replacen("{}", &show(part), 1);
                    }
                }
                self.note(text);
            }
            "static_assert" => return Ok(Value::Bool(true)),
            _ => {
                if self.unsupported.insert(name.clone()) {
                    self.note(format!("the extern function {name} is unknown; calls of it do nothing"));
                }
            }
        }
        Ok(Value::None)
    }

    fn note(&mut self, text: String) {
        // Limited, because a program may log endlessly.
        if self.notes.len() < 10_000 {
            self.notes.push(text);
        }
    }

    /// Sets a field of the standard metadata.
    pub(super) fn set_field(&self, fields: &mut [Value], name: &str, value: BigInt) {
        let info = self.program.types.structs.iter().find(|info| &*info.name == "standard_metadata_t");
        let place = info.and_then(|info| info.fields.iter().position(|(field, _)| &**field == name));
        if let Some(field) = place.and_then(|place| fields.get_mut(place)) {
            *field = Value::Int(value);
        }
    }

    pub(super) fn method(
        &mut self,
        frame: &mut Frame,
        object: &Value,
        (class, name): (&str, &str),
        call: &'p Call,
        ty: Ty,
    ) -> Run<Value> {
        let arguments = &call.arguments;
        match class {
            "packet_in" => return self.packet_in(frame, name, arguments, ty),
            "packet_out" => {
                let value = self.input_value(frame, arguments, 0)?;
                if let Some(argument) = arguments.first() {
                    let mut output = std::mem::take(&mut self.output);
                    output.push_value(&self.program.types, &value, argument.ty);
                    self.output = output;
                }
                return Ok(Value::None);
            }
            "Checksum16" => {
                let value = self.input_value(frame, arguments, 0)?;
                let data = self.data(&value, arguments.first().map_or(ty, |argument| argument.ty));
                return Ok(Value::Int(hash::hash(6, &data)));
            }
            _ => {}
        }
        let inputs = self.inputs(frame, arguments)?;
        let number = |place: usize| inputs.get(place).map_or(u64::MAX, Value::number);
        let length = (self.input.len() / 8) as u64;
        let Value::Object(place) = object else {
            return Err(Stop::Failure(format!("the object is not an instance of {class}")));
        };
        let index = |place: usize| usize::try_from(number(place)).unwrap_or(usize::MAX);
        match (self.objects.get_mut(*place), name) {
            (Some(Object::Register { element, values }), "read") => {
                // Cells outside of the array read as zero.
                let value = values.get(index(1)).cloned().unwrap_or_else(|| self.program.types.zero(*element));
                self.output(frame, arguments, 0, value)?;
            }
            (Some(Object::Register { values, .. }), "write") => {
                if let (Some(cell), Some(value)) = (values.get_mut(index(0)), inputs.get(1)) {
                    *cell = value.clone();
                }
            }
            (Some(Object::Counter(cells)), "count") => {
                if let Some((packets, bytes)) = cells.get_mut(if inputs.is_empty() { 0 } else { index(0) }) {
                    *packets += 1;
                    *bytes += length;
                }
            }
            (Some(Object::Meter(colours)), "execute_meter") => {
                let colour = colours.get(index(0)).copied().unwrap_or(0);
                let colour = self.as_type(&colour.into(), arguments.get(1).map_or(ty, |argument| argument.ty));
                self.output(frame, arguments, 1, colour)?;
            }
            (Some(Object::Meter(_)), "read") => {
                let colour = self.as_type(&0.into(), arguments.first().map_or(ty, |argument| argument.ty));
                self.output(frame, arguments, 0, colour)?;
            }
            _ => {
                let name: Arc<str> = format!("{class}.{name}").into();
                if self.unsupported.insert(name.clone()) {
                    self.note(format!("the method {name} is unknown; calls of it do nothing"));
                }
                return Ok(self.program.types.zero(ty));
            }
        }
        Ok(Value::None)
    }
}

/// A value as text, for logs.
pub fn show(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) | Value::Varbit { value, .. } => value.to_string(),
        Value::Member(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        Value::Header { valid: false, .. } => "invalid".into(),
        Value::Header { fields, .. } | Value::Struct(fields) | Value::Stack { elements: fields, .. } => {
            format!("{{{}}}", fields.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        Value::Object(_) | Value::None => "-".into(),
    }
}
