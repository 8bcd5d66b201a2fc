//! Assignments, lookups and other statements.

use namehop_p4_lang::types::Types;

use super::{Fixture, expr, storage, truth};
use crate::ir::verify::Fault;
use crate::ir::{
    Apply, Cipher, CounterId, DigestId, Emit, EmitField, Expr, Id, Kind, Place, RegisterId, Request, Resume, Sink,
    Statement, TableId, Var,
};

fn check(make: impl FnOnce(&Fixture) -> Statement) -> Result<(), Fault> {
    let fixture = Fixture::new();
    let body = vec![make(&fixture)];
    fixture.check(body)
}

/// What is wrong with a statement before the packet is dropped.
fn check_fused(make: impl FnOnce(&Fixture) -> Statement) -> Result<(), Fault> {
    let fixture = Fixture::new();
    let body = vec![make(&fixture), Statement::Drop];
    fixture.check_fused(body)
}

#[test]
fn assignments_have_equal_types() {
    let wide = check(|f| Statement::Set(f.metadata(), f.number(1, f.short)));
    assert_eq!(wide, storage("the assigned value", "bit<8>", "bit<16>"));
    let truth = check(|f| Statement::Set(f.metadata(), truth()));
    assert_eq!(truth, storage("the assigned value", "bit<8>", "bool"));
}

#[test]
fn conditions_are_truth_values() {
    let condition = check(|f| Statement::If(f.byte(), Vec::new(), Vec::new()));
    assert_eq!(condition, storage("the condition", "bool", "bit<8>"));
}

#[test]
fn numbers_are_integers() {
    assert_eq!(check(|_| Statement::Advance(truth())), storage("the number of bits", "an integer", "bool"));
    assert_eq!(check(|_| Statement::Error(truth())), storage("the parser error", "bit<32>", "bool"));
    let request = |value, list| Statement::Request { request: Request::Clone, value, list };
    assert_eq!(check(|f| request(f.byte(), None)), Ok(()));
    assert_eq!(check(|_| request(truth(), None)), storage("the value of the request", "an integer", "bool"));
    assert_eq!(check(|f| request(f.byte(), Some(truth()))), storage("the field list", "an integer", "bool"));
}

#[test]
fn fields_of_variable_length_are_varbits() {
    let read = check(|f| Statement::ReadVarbit(f.metadata(), f.byte()));
    assert_eq!(read, storage("the field of variable length", "varbit", "bit<8>"));
}

#[test]
fn appended_values_have_bits() {
    let whole = check(|f| Statement::Append(Sink::Data, Expr::read(Place::variable(Var::HEADERS, f.stack))));
    assert_eq!(whole, storage("the appended value", "bits", "h[2]"));
}

#[test]
fn objects_exist_and_have_the_type_of_their_use() {
    let none = |kind, number| Err(Fault::NoObject { kind, number });
    let write = |register, value: fn(&Fixture) -> Expr| {
        check(|f| Statement::WriteRegister(RegisterId::new(register), f.byte(), value(f)))
    };
    assert_eq!(write(0, Fixture::byte), Ok(()));
    assert_eq!(write(1, Fixture::byte), none("register", 1));
    assert_eq!(write(0, |_| truth()), storage("the value of the register", "bit<8>", "bool"));
    assert_eq!(check(|f| Statement::Count(CounterId::new(0), f.byte())), none("counter", 0));
    assert_eq!(check(|_| Statement::Digest(DigestId::new(2))), none("digest", 2));
}

fn apply(fixture: &Fixture) -> Apply {
    Apply {
        table: TableId::new(0),
        keys: vec![fixture.byte()],
        hashed: 0,
        hit: Some(Var::STANDARD),
        chosen: Some(Var::METADATA),
        actions: vec![Vec::new()],
        resume: Resume::default(),
    }
}

/// What is wrong with a lookup after a change.
fn lookup(change: impl FnOnce(&Fixture, &mut Apply)) -> Result<(), Fault> {
    check(|fixture| {
        let mut apply = apply(fixture);
        change(fixture, &mut apply);
        Statement::Apply(apply)
    })
}

#[test]
fn lookups_fit_their_table() {
    let count = |what, expected, found| Err(Fault::Count { what, expected, found });
    assert_eq!(lookup(|_, _| {}), Ok(()));
    assert_eq!(lookup(|_, apply| apply.table = TableId::new(1)), Err(Fault::NoObject { kind: "table", number: 1 }));
    assert_eq!(lookup(|_, apply| apply.keys.clear()), count("keys of the lookup", 1, 0));
    assert_eq!(lookup(|_, apply| apply.actions.clear()), count("actions of the lookup", 1, 0));
    assert_eq!(lookup(|_, apply| apply.hashed = 2), count("hashed words of the key", 1, 2));
    let key = lookup(|f, apply| apply.keys[0] = f.number(1, f.short));
    assert_eq!(key, storage("a key", "8 bits", "bit<16>"));
    let hit = lookup(|_, apply| apply.hit = Some(Var::METADATA));
    assert_eq!(hit, storage("the result of the lookup", "bool", "bit<8>"));
    let chosen = lookup(|_, apply| apply.chosen = Some(Var::STANDARD));
    assert_eq!(chosen, storage("the number of the action", "bit<8>", "bool"));
    assert_eq!(lookup(|_, apply| apply.hit = Some(Var::new(9))), Err(Fault::NoVariable(Var::new(9))));
}

#[test]
fn action_data_is_read_in_actions() {
    let data = |f: &Fixture, offset| f.set(expr(Kind::Argument(offset), f.byte)).remove(0);
    assert_eq!(check(|f| data(f, 0)), Err(Fault::NoAction));
    assert_eq!(lookup(|f, apply| apply.actions[0].push(data(f, 0))), Ok(()));
    let beyond = lookup(|f, apply| apply.actions[0].push(data(f, 1)));
    assert_eq!(beyond, Err(Fault::ActionData { end: 9, bits: 8 }));
}

#[test]
fn ciphers_have_their_widths() {
    let cipher = |change: fn(&mut Cipher, Expr)| {
        check(|f| {
            let block = f.number(1, f.word);
            let mut cipher = Cipher {
                encrypts: true,
                offset: f.number(0, f.word),
                key: block.clone(),
                iv: block,
                resume: Resume::default(),
            };
            change(&mut cipher, f.byte());
            Statement::Cipher(cipher)
        })
    };
    assert_eq!(cipher(|cipher, byte| cipher.offset = byte), storage("the offset", "bit<64>", "bit<8>"));
    assert_eq!(cipher(|_, _| {}), storage("the key", "bit<128>", "bit<64>"));
}

#[test]
fn packets_continue_with_what_exists() {
    let resume = |change: fn(&Fixture, &mut Resume)| {
        check_fused(|f| {
            let mut apply = Apply { hit: None, ..apply(f) };
            change(f, &mut apply.resume);
            Statement::Apply(apply)
        })
    };
    assert_eq!(resume(|_, resume| resume.kept.push(Var::METADATA)), Ok(()));
    assert_eq!(resume(|_, resume| resume.kept.push(Var::new(9))), Err(Fault::NoVariable(Var::new(9))));
    assert_eq!(resume(|_, resume| resume.located.push((Var::METADATA, 0))), Err(Fault::NoBase(Var::METADATA)));
    let known = resume(|_, resume| resume.known.push((Var::METADATA, namehop_p4_lang::value::Value::Bool(true))));
    assert_eq!(known, Err(Fault::Constant("bit<8>".into())));
    let field = resume(|f, resume| resume.fields.push((Var::METADATA, f.byte())));
    assert_eq!(field, storage("the value of a field", "bits of the packet", "bit<8>"));
    assert_eq!(check_fused(|_| Statement::Barrier(vec![Var::new(9)])), Err(Fault::NoVariable(Var::new(9))));
    assert_eq!(check_fused(|_| Statement::Locate(Var::METADATA, true)), Err(Fault::NoBase(Var::METADATA)));
}

#[test]
fn headers_are_sent_with_their_widths() {
    let send = |change: fn(&Fixture, &mut Emit)| {
        let fixture = Fixture::new();
        let field = EmitField { value: fixture.byte(), width: 8, changed: true };
        let mut emit = Emit { valid: None, base: None, fields: vec![field] };
        change(&fixture, &mut emit);
        let body = vec![Statement::Send(expr(Kind::Port, fixture.short), Some(vec![emit]))];
        fixture.check_fused(body)
    };
    assert_eq!(send(|_, _| {}), Ok(()));
    assert_eq!(send(|_, emit| emit.fields[0].width = 4), storage("a field", "4 bits", "bit<8>"));
    assert_eq!(send(|f, emit| emit.valid = Some(f.byte())), storage("the validity of a header", "bool", "bit<8>"));
    assert_eq!(send(|_, emit| emit.base = Some(Var::METADATA)), Err(Fault::NoBase(Var::METADATA)));
    let fixture = Fixture::new();
    let port = fixture.check_fused(vec![Statement::Send(expr(Kind::Random, Types::BOOL), None)]);
    assert_eq!(port, storage("the result", "bit<64>", "bool"));
}

#[test]
fn statements_belong_to_one_form_of_program() {
    for statement in [Statement::Drop, Statement::Barrier(Vec::new()), Statement::Locate(Var::STANDARD, true)] {
        assert_eq!(check(|_| statement), Err(Fault::WrongForm("one part")));
    }
    assert_eq!(check(|f| Statement::Send(f.byte(), None)), Err(Fault::WrongForm("one part")));
    assert_eq!(check_fused(|_| Statement::ChecksumError), Err(Fault::WrongForm("six parts")));
    assert_eq!(check_fused(|f| Statement::Error(f.byte())), Err(Fault::WrongForm("six parts")));
}
