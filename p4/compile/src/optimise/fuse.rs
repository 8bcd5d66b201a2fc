//! Fuses all parts of a program into one, for packets that go straight through: without copies, resubmission or
//! recirculation. The traffic manager's work is placed between the parts, so that knowledge of one part is available in
//! the next.

use std::collections::HashSet;

use namehop_p4_lang::syntax::Binary;
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;

use crate::ir::{Expr, Fused, IndexVec, Kind, Part, Place, Program, Sink, Statement, Step, Var, Variable};
use crate::optimise::visit;

/// The egress port that drops packets.
const DROP_PORT: u64 = 511;

/// The program as one part. `None` if packets may be copied, resubmitted or recirculated, or if headers do not end at
/// byte boundaries.
pub fn fuse(program: &Program, types: &Types) -> Option<Fused> {
    if !goes_straight(program, types) {
        return None;
    }
    let ordered = sees_order(program);
    let mut fuser = Fuser { types, variables: program.variables.clone(), body: Vec::new() };
    fuser.all(program, ordered)?;
    let Fuser { variables, body, .. } = fuser;
    let program = Program {
        variables,
        parts: vec![Part { name: "way", title: "all parts".into(), body }],
        tables: program.tables.clone(),
        registers: program.registers.clone(),
        counters: program.counters.clone(),
        meters: program.meters.clone(),
        profiles: program.profiles.clone(),
        value_sets: program.value_sets.clone(),
        digests: program.digests.clone(),
        notes: Vec::new(),
    };
    Some(Fused { program, ordered, headers: Vec::new(), kept: HashSet::new(), bases: HashSet::new() })
}

/// True if packets can observe their order: through registers or random numbers.
fn sees_order(program: &Program) -> bool {
    let mut sees = false;
    for part in &program.parts {
        visit::accesses(&part.body, &mut |_, _| sees = true);
    }
    sees
}

fn goes_straight(program: &Program, types: &Types) -> bool {
    let ty = program.variables[Var::STANDARD].ty;
    let group = types.structure(ty).and_then(|info| info.fields.iter().position(|(name, _)| &**name == "mcast_grp"));
    let mut straight = visit::is_aligned(program);
    let mut loops = [false; 2];
    for (number, part) in program.parts.iter().enumerate() {
        visit::statements(&part.body, &mut |statement| match statement {
            Statement::Request { .. } => straight = false,
            // Clearing the multicast group drops a packet; setting it to another value copies packets.
            Statement::Set(place, value) if place.root == Var::STANDARD => {
                let clears = matches!(&value.kind, Kind::Const(value) if value.number() == 0);
                straight &= matches!(place.steps.first(), Some(Step::Field(field)) if clears || Some(*field) != group);
            }
            // The limit of steps starts anew after the traffic manager.
            Statement::Loop(_) => loops[usize::from(number > 2)] = true,
            _ => {}
        });
        straight &= writes_bytes(&part.body, types);
    }
    straight && loops != [true, true]
}

/// True if each sequence of appends to the packet is a whole number of bytes.
fn writes_bytes(list: &[Statement], types: &Types) -> bool {
    let mut bits = 0;
    for statement in list {
        if let Statement::Append(Sink::Packet, value) = statement {
            let Some(width) = fixed_width(types, value.ty) else { return false };
            bits += width;
        } else if bits % 8 != 0 {
            return false;
        }
        if !statement.inner().into_iter().all(|inner| writes_bytes(inner, types)) {
            return false;
        }
    }
    bits % 8 == 0
}

/// The width in bits of a type with fixed width.
pub fn fixed_width(types: &Types, ty: Ty) -> Option<u32> {
    match types.get(types.stripped(ty)) {
        Type::Bool => Some(1),
        Type::Varbit(_) => None,
        _ => Some(types.representation(ty).map_or(0, |(width, _)| width)),
    }
}

struct Fuser<'a> {
    types: &'a Types,
    variables: IndexVec<Var, Variable>,
    body: Vec<Statement>,
}

impl Fuser<'_> {
    fn variable(&mut self, name: &str, ty: Ty) -> Place {
        Place::variable(self.variables.push(Variable { name: name.into(), ty }), ty)
    }

    fn set(&mut self, place: Place, value: Expr) {
        self.body.push(Statement::Set(place, value));
    }

    /// A field of the standard metadata.
    fn standard(&self, name: &str) -> Option<Place> {
        let ty = self.variables[Var::STANDARD].ty;
        let fields = &self.types.structure(ty)?.fields;
        let field = fields.iter().position(|(field, _)| &**field == name)?;
        Some(Place::variable(Var::STANDARD, ty).step(Step::Field(field), fields[field].1))
    }

    fn set_standard(&mut self, name: &str, value: impl Fn(Ty) -> Expr) {
        if let Some(place) = self.standard(name) {
            let value = value(place.ty);
            self.set(place, value);
        }
    }

    fn drop_if_dropped(&mut self, port: &Place) {
        let dropped = Box::new(number(DROP_PORT, port.ty));
        let condition = Kind::Binary(Binary::Equal, Box::new(Expr::read(port.clone())), dropped);
        let condition = Expr { kind: condition, ty: Types::BOOL };
        self.body.push(Statement::If(condition, vec![Statement::Drop], Vec::new()));
    }

    fn all(&mut self, program: &Program, ordered: bool) -> Option<()> {
        for root in Var::OF_PACKET {
            let ty = self.variables[root].ty;
            self.set(Place::variable(root, ty), Expr::constant(self.types.zero(ty), ty));
        }
        self.set_standard("ingress_port", |ty| Expr { kind: Kind::Port, ty });
        self.set_standard("packet_length", |ty| Expr { kind: Kind::Length, ty });
        let rejected = self.variable("rejected", Types::BOOL);
        let error = self.variable("parser_error", Types::ERROR);
        let wrong_sum = self.variable("checksum_error", Types::BOOL);
        for place in [&rejected, &error, &wrong_sum] {
            let zero = Expr::constant(self.types.zero(place.ty), place.ty);
            self.set(place.clone(), zero);
        }
        let out = self.standard("egress_spec")?;
        let mut stages = false;
        let mut port = None;
        for (number, part) in program.parts.iter().enumerate() {
            if ordered && stages && !part.body.is_empty() {
                self.body.push(Statement::Barrier(Vec::new()));
            }
            let mut body = part.body.clone();
            with_variables(&mut body, &rejected, &error, &wrong_sum);
            self.body.extend(body);
            visit::statements(&part.body, &mut |statement| stages |= statement.ends_stage());
            match number {
                0 => {
                    let then =
                        self.standard("parser_error").map(|place| Statement::Set(place, Expr::read(error.clone())));
                    self.body.push(Statement::If(Expr::read(rejected.clone()), then.into_iter().collect(), Vec::new()));
                }
                1 => {
                    let then = self.standard("checksum_error").map(|place| {
                        let one = self::number(1, place.ty);
                        Statement::Set(place, one)
                    });
                    self.body.push(Statement::If(
                        Expr::read(wrong_sum.clone()),
                        then.into_iter().collect(),
                        Vec::new(),
                    ));
                }
                2 => {
                    let place = self.variable("port", out.ty);
                    self.set(place.clone(), Expr::read(out.clone()));
                    self.drop_if_dropped(&place);
                    self.set_standard("egress_port", |_| Expr::read(place.clone()));
                    for name in ["egress_spec", "egress_rid", "instance_type"] {
                        self.set_standard(name, |ty| self::number(0, ty));
                    }
                    port = Some(place);
                }
                3 if !part.body.is_empty() => self.drop_if_dropped(&out),
                _ => {}
            }
        }
        self.body.push(Statement::Send(Expr::read(port?), None));
        Some(())
    }
}

fn number(value: u64, ty: Ty) -> Expr {
    Expr::constant(Value::Int(value.into()), ty)
}

/// Replaces requests to the traffic manager by assignments to variables.
fn with_variables(list: &mut Vec<Statement>, rejected: &Place, error: &Place, wrong_sum: &Place) {
    let truth = || Expr::constant(Value::Bool(true), Types::BOOL);
    for mut statement in std::mem::take(list) {
        for inner in statement.inner_mut() {
            with_variables(inner, rejected, error, wrong_sum);
        }
        match statement {
            Statement::Error(value) => {
                list.push(Statement::Set(error.clone(), value));
                list.push(Statement::Set(rejected.clone(), truth()));
            }
            Statement::ChecksumError => list.push(Statement::Set(wrong_sum.clone(), truth())),
            other => list.push(other),
        }
    }
}
