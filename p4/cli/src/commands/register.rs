//! `namehop p4 register`: shows, writes and resets the registers of a running program.

use clap::{Args, Subcommand};
use namehop_p4runtime::info::{self, Object, P4Info};
use namehop_p4runtime::message::RegisterEntry;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use serde_json::{Value, json};

use crate::control::names::{self, object, path, selected};
use crate::control::values::{self, Shape};
use crate::control::{Outcome, Remote, To, answer};

#[derive(Subcommand)]
pub(crate) enum RegisterCommand {
    /// Show cells that are not zero
    Read(RegisterArgs),
    /// Write a cell
    Write {
        /// The register, by its name or the end of it
        register: String,
        /// The cell
        index: u64,
        /// Its value, as in table entries; PART:VALUE for cells that are structs, where the other parts stay unchanged
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
        #[command(flatten)]
        to: To,
    },
    /// Set cells to zero
    Reset(RegisterArgs),
}

#[derive(Args)]
pub(crate) struct RegisterArgs {
    /// The register, by its name or the end of it
    register: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

/// Runs the command.
pub(crate) fn run(command: &RegisterCommand) -> Outcome<()> {
    let (to, answer) = match command {
        RegisterCommand::Read(args) => (&args.to, read(args)?),
        RegisterCommand::Reset(args) => (&args.to, reset(args)?),
        RegisterCommand::Write { register, index, values, to } => (to, write(register, *index, values, to)?),
    };
    Ok(answer::print(to, &answer)?)
}

/// Finds a register, and checks the index.
fn found<'i>(info: &'i P4Info, name: &str, index: Option<u64>) -> Result<&'i info::Register, String> {
    let register = object("register", &info.registers, name)?;
    selected("register", path(register), index, register.size as usize)?;
    Ok(register)
}

/// The type of a register's cells.
fn shape_of(info: &P4Info, register: &info::Register) -> Result<Shape, String> {
    Shape::of(info, register.type_spec.as_ref()).ok_or_else(|| {
        let path = path(register);
        format!("register {path}: its cells contain headers or stacks, which cannot be read or written")
    })
}

fn read(args: &RegisterArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let register = found(&remote.info, &args.register, args.index)?;
    let (path, shape) = (path(register).to_owned(), shape_of(&remote.info, register)?);
    let register_id = register.preamble().id;
    let asked = RegisterEntry { register_id, index: names::index(args.index), data: None };
    let mut cells = Vec::new();
    for kind in remote.read(Kind::RegisterEntry(asked))? {
        let Kind::RegisterEntry(RegisterEntry { index, data, .. }) = kind else { continue };
        let (index, data) = (index.unwrap_or_default().index, data.unwrap_or_default());
        if args.index.is_some() || !values::is_zero(&data) {
            cells.push(json!({"index": index, "value": shape.json(&data)}));
        }
    }
    Ok(json!({ "register": path, "cells": cells }))
}

fn write(name: &str, index: u64, values: &[String], to: &To) -> Outcome<Value> {
    let mut remote = Remote::connect(to)?;
    let register = found(&remote.info, name, Some(index))?;
    let path = path(register).to_owned();
    let data = Some(values::written(&path, &shape_of(&remote.info, register)?, values)?);
    let cell = RegisterEntry { register_id: register.preamble().id, index: names::index(Some(index)), data };
    remote.change(UpdateType::Modify, Kind::RegisterEntry(cell))?;
    Ok(json!({ "register": path }))
}

fn reset(args: &RegisterArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let register = found(&remote.info, &args.register, args.index)?;
    let path = path(register).to_owned();
    let cells = RegisterEntry { register_id: register.preamble().id, index: names::index(args.index), data: None };
    remote.change(UpdateType::Modify, Kind::RegisterEntry(cells))?;
    Ok(json!({ "register": path }))
}
