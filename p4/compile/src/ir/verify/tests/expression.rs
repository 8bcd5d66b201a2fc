//! Places, operators and other expressions.

use namehop_p4_lang::syntax::{Binary, Unary};
use namehop_p4_lang::types::{Ty, Types};
use namehop_p4_lang::value::Value;

use super::{Fixture, expr, storage, truth};
use crate::ir::verify::Fault;
use crate::ir::{Expr, Id, Kind, MeterId, Place, RegisterId, Statement, Step, ValueSetId, Var};

/// A type of the fixture.
type Of = fn(&Fixture) -> Ty;

/// What is wrong if the metadata, a byte, is set to a value.
fn value(make: impl FnOnce(&Fixture) -> Expr) -> Result<(), Fault> {
    let fixture = Fixture::new();
    let body = fixture.set(make(&fixture));
    fixture.check(body)
}

/// What is wrong if a place is read, as a condition.
fn place(make: impl FnOnce(&Fixture, Place) -> Place) -> Result<(), Fault> {
    let fixture = Fixture::new();
    let headers = Place::variable(Var::HEADERS, fixture.stack);
    let read = Expr::read(make(&fixture, headers));
    fixture.check(vec![Statement::If(read, Vec::new(), Vec::new())])
}

fn boxed(fixture: &Fixture) -> Box<Expr> {
    Box::new(fixture.byte())
}

fn element(fixture: &Fixture, stack: &Place) -> Place {
    stack.step(Step::Index(boxed(fixture)), fixture.header)
}

#[test]
fn variables_are_declared() {
    let missing = Var::new(3);
    assert_eq!(value(|f| Expr::read(Place::variable(missing, f.byte))), Err(Fault::NoVariable(missing)));
}

#[test]
fn places_have_the_types_of_their_parts() {
    assert_eq!(place(|f, stack| element(f, &stack).step(Step::Valid, Types::BOOL)), Ok(()));
    let wrong = Err(Fault::PlaceType { declared: "bit<8>".into(), used: "bit<16>".into() });
    assert_eq!(place(|f, stack| element(f, &stack).step(Step::Field(0), f.short)), wrong);
    assert_eq!(value(|f| Expr::read(Place::variable(Var::METADATA, f.short))), wrong);
}

#[test]
fn steps_lead_to_parts_that_exist() {
    let none = |ty: &str| Err(Fault::NoPart(ty.into()));
    assert_eq!(place(|f, stack| element(f, &stack).step(Step::Field(2), Types::BOOL)), none("h"));
    assert_eq!(place(|_, stack| stack.step(Step::Field(0), Types::BOOL)), none("h[2]"));
    assert_eq!(place(|_, stack| stack.step(Step::Valid, Types::BOOL)), none("h[2]"));
    assert_eq!(place(|f, stack| element(f, &stack).step(Step::Next, Types::BOOL)), none("h"));
    let whole = |f: &Fixture| Step::Index(boxed(f));
    assert_eq!(place(|f, _| f.metadata().step(whole(f), Types::BOOL)), none("bit<8>"));
    let by_truth = place(|f, stack| stack.step(Step::Index(Box::new(truth())), f.header));
    assert_eq!(by_truth, storage("the index", "an integer", "bool"));
    let next = place(|_, stack| stack.step(Step::Next, Types::BOOL));
    assert_eq!(next, storage("the position in a stack", "bit<32>", "bool"));
}

#[test]
fn constants_fit_into_their_types() {
    assert_eq!(value(|f| f.number(255, f.byte)), Ok(()));
    assert_eq!(value(|f| f.number(256, f.byte)), Err(Fault::Constant("bit<8>".into())));
    assert_eq!(value(|f| Expr::constant(Value::Bool(true), f.byte)), Err(Fault::Constant("bit<8>".into())));
    let few = value(|f| Expr::constant(Value::Header { valid: true, fields: Vec::new() }, f.header));
    assert_eq!(few, Err(Fault::Constant("h".into())));
}

#[test]
fn reading_gives_the_type_of_the_place() {
    let read = value(|f| expr(Kind::Read(f.metadata()), f.short));
    assert_eq!(read, storage("the value of a place", "bit<8>", "bit<16>"));
}

#[test]
fn operands_have_the_type_of_the_operator() {
    let unary = |operator, ty: Of| value(|f| expr(Kind::Unary(operator, Box::new(f.number(1, ty(f)))), f.byte));
    assert_eq!(unary(Unary::Not, |f| f.byte), storage("the operand", "bool", "bit<8>"));
    assert_eq!(unary(Unary::Minus, |f| f.short), storage("the operand", "bit<8>", "bit<16>"));
    let binary = |operator, left: Of, right: Of| {
        value(|f| {
            let (left, right) = (Box::new(f.number(1, left(f))), Box::new(f.number(1, right(f))));
            expr(Kind::Binary(operator, left, right), f.byte)
        })
    };
    let (byte, short): (Of, Of) = (|f| f.byte, |f| f.short);
    assert_eq!(binary(Binary::Add, byte, byte), Ok(()));
    assert_eq!(binary(Binary::Add, short, byte), storage("the left operand", "bit<8>", "bit<16>"));
    assert_eq!(binary(Binary::Mul, byte, short), storage("the right operand", "bit<8>", "bit<16>"));
    assert_eq!(binary(Binary::Shl, byte, short), Ok(()));
    assert_eq!(binary(Binary::Shr, short, byte), storage("the left operand", "bit<8>", "bit<16>"));
    assert_eq!(binary(Binary::Concat, byte, byte), storage("the result", "16 bits", "bit<8>"));
    assert_eq!(binary(Binary::And, byte, byte), storage("the left operand", "bool", "bit<8>"));
    assert_eq!(binary(Binary::Less, byte, short), storage("the right operand", "bit<8>", "bit<16>"));
    assert_eq!(binary(Binary::Equal, byte, short), storage("the right operand", "bit<8>", "bit<16>"));
    assert_eq!(binary(Binary::Equal, byte, byte), storage("the result", "bool", "bit<8>"));
}

#[test]
fn choices_have_one_type() {
    let choice = |condition: fn(&Fixture) -> Expr, no: fn(&Fixture) -> Expr| {
        value(|f| expr(Kind::Choice(Box::new(condition(f)), boxed(f), Box::new(no(f))), f.byte))
    };
    assert_eq!(choice(|_| truth(), |f| f.byte()), Ok(()));
    assert_eq!(choice(|f| f.byte(), |f| f.byte()), storage("the condition", "bool", "bit<8>"));
    let wide = storage("the second choice", "bit<8>", "bit<16>");
    assert_eq!(choice(|_| truth(), |f| f.number(1, f.short)), wide);
}

#[test]
fn casts_are_between_values_with_bits() {
    assert_eq!(value(|f| expr(Kind::Cast(Box::new(truth())), f.byte)), Ok(()));
    let text = || Box::new(Expr::constant(Value::Text("".into()), Types::STRING));
    assert_eq!(value(|f| expr(Kind::Cast(text()), f.byte)), storage("the operand of a cast", "bits", "no value"));
    assert_eq!(value(|f| expr(Kind::Cast(boxed(f)), f.header)), storage("the result of a cast", "bits", "h"));
}

#[test]
fn bits_are_in_their_value() {
    assert_eq!(value(|f| expr(Kind::Slice(Box::new(f.number(1, f.short)), 11, 4), f.byte)), Ok(()));
    let outside = value(|f| expr(Kind::Slice(boxed(f), 8, 1), f.byte));
    assert_eq!(outside, Err(Fault::NoBits { high: 8, low: 1, width: 8 }));
    let narrow = value(|f| expr(Kind::Slice(boxed(f), 6, 0), f.byte));
    assert_eq!(narrow, storage("the bits", "7 bits", "bit<8>"));
    let insert = value(|f| expr(Kind::Insert(boxed(f), 3, 0, boxed(f)), f.byte));
    assert_eq!(insert, storage("the bits", "4 bits", "bit<8>"));
}

#[test]
fn parts_are_those_of_the_type() {
    let count = value(|f| expr(Kind::Parts(vec![f.byte()]), f.header));
    assert_eq!(count, Err(Fault::Count { what: "parts", expected: 2, found: 1 }));
    let wrong = value(|f| expr(Kind::Parts(vec![f.byte(), f.byte()]), f.header));
    assert_eq!(wrong, storage("a part", "bit<16>", "bit<8>"));
    assert_eq!(value(|f| expr(Kind::Parts(Vec::new()), f.byte)), Err(Fault::NoPart("bit<8>".into())));
}

#[test]
fn what_packets_and_lookups_give_has_a_type() {
    assert_eq!(value(|f| expr(Kind::Packet(0), f.header)), storage("bits of the packet", "bits", "h"));
    for kind in [Kind::Left, Kind::Random] {
        assert_eq!(value(|f| expr(kind, f.byte)), storage("the result", "bit<64>", "bit<8>"));
    }
    for kind in [Kind::Length, Kind::Port] {
        assert_eq!(value(|_| expr(kind, Types::BOOL)), storage("the result", "an integer", "bool"));
    }
    let hash = value(|f| expr(Kind::Hash(Box::new(truth())), f.byte));
    assert_eq!(hash, storage("the hash algorithm", "an integer", "bool"));
    let sum = value(|f| expr(Kind::Sum(vec![Expr::read(Place::variable(Var::HEADERS, f.stack))]), f.byte));
    assert_eq!(sum, storage("a value of the sum", "bits", "h[2]"));
}

#[test]
fn registers_meters_and_value_sets_exist() {
    let none = |kind, number| Err(Fault::NoObject { kind, number });
    let register = |number, ty: Of| value(|f| expr(Kind::Register(RegisterId::new(number), boxed(f)), ty(f)));
    assert_eq!(register(0, |f| f.byte), Ok(()));
    assert_eq!(register(1, |f| f.byte), none("register", 1));
    assert_eq!(register(0, |f| f.short), storage("the value of the register", "bit<8>", "bit<16>"));
    assert_eq!(value(|f| expr(Kind::Meter(MeterId::new(0), boxed(f)), f.byte)), none("meter", 0));
    let set = value(|f| expr(Kind::InSet(ValueSetId::new(0), vec![f.byte()]), Types::BOOL));
    assert_eq!(set, none("value set", 0));
}

#[test]
fn positions_in_the_packet_are_no_values() {
    let base = Var::STANDARD;
    let field = |f: &Fixture, base| expr(Kind::Field(base, 0), f.byte);
    let fixture = Fixture::new();
    let mut body = fixture.set(field(&fixture, base));
    body.push(Statement::Drop);
    assert_eq!(fixture.check_fused(body), Ok(()));
    let fixture = Fixture::new();
    let body = fixture.set(field(&fixture, Var::METADATA));
    assert_eq!(fixture.check_fused(body), Err(Fault::NoBase(Var::METADATA)));
    let read = Expr::read(Place::variable(base, Types::BOOL));
    let body = vec![Statement::If(read, Vec::new(), Vec::new())];
    assert_eq!(Fixture::new().check_fused(body), Err(Fault::BaseAsValue(base)));
    assert_eq!(value(|f| field(f, base)), Err(Fault::WrongForm("one part")));
}
