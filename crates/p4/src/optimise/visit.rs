//! Ways through the statements of a program.

use std::collections::{HashMap, HashSet};

use crate::ir::{Expr, Kind, Program, Statement, Var};

/// Calls a function with all statements, those in statements too.
pub fn statements(list: &[Statement], each: &mut dyn FnMut(&Statement)) {
    for statement in list {
        each(statement);
        for inner in statement.inner() {
            statements(inner, each);
        }
    }
}

/// Whether the position in the packet is a whole byte wherever it is read.
pub fn is_aligned(program: &Program) -> bool {
    let mut aligned = true;
    for part in &program.parts {
        statements(&part.body, &mut |statement| {
            if let Statement::Advance(bits) = statement
                && let Kind::Const(bits) = &bits.kind
            {
                aligned &= bits.number() % 8 == 0;
            }
        });
    }
    aligned
}

/// Calls a function with an expression and all that it consists of.
pub fn expressions(expr: &Expr, each: &mut dyn FnMut(&Expr)) {
    each(expr);
    expr.parts(&mut |part| expressions(part, each));
}

/// The variables that a statement reads, writes or writes parts of, not counting those of statements in it.
pub fn variables(statement: &Statement, each: &mut dyn FnMut(Var, bool)) {
    statement.expressions(&mut |expr| {
        expressions(expr, &mut |expr| {
            if let Kind::Read(place) = &expr.kind {
                each(place.root, true);
            }
        });
    });
    match statement {
        Statement::Set(place, _) | Statement::ReadVarbit(place, _) => each(place.root, false),
        Statement::Locate(base, _) => each(*base, false),
        Statement::Apply(apply) => {
            for variable in [apply.hit, apply.chosen].into_iter().flatten() {
                each(variable, false);
            }
        }
        _ => {}
    }
}

fn has_lookup(list: &[Statement]) -> bool {
    let mut found = false;
    statements(list, &mut |statement| found |= matches!(statement, Statement::Apply(_)));
    found
}

/// Calls a function with all statements and the segment in which they are: how many lookups stand before them. None is
/// of loops that have lookups, which are in several.
fn with_segments<'s>(
    list: &'s [Statement],
    segment: &mut usize,
    several: bool,
    each: &mut dyn FnMut(&'s Statement, Option<usize>),
) {
    for statement in list {
        let here = (!several).then_some(*segment);
        each(statement, here);
        if let Statement::Apply(_) = statement {
            *segment += 1;
        }
        let several = several || matches!(statement, Statement::Loop(body) if has_lookup(body));
        for inner in statement.inner() {
            with_segments(inner, segment, several, each);
        }
    }
}

/// Collects the variables that are used in more than one segment.
pub fn segments(list: &[Statement], kept: &mut HashSet<Var>) {
    let mut seen: HashMap<Var, usize> = HashMap::new();
    let mut note = |variable: Var, segment: Option<usize>| match segment {
        Some(segment) if *seen.entry(variable).or_insert(segment) == segment => {}
        _ => {
            kept.insert(variable);
        }
    };
    with_segments(list, &mut 0, false, &mut |statement, segment| {
        variables(statement, &mut |variable, _| note(variable, segment));
        if let Statement::Apply(apply) = statement {
            for variable in [apply.hit, apply.chosen].into_iter().flatten() {
                note(variable, segment.map(|segment| segment + 1));
            }
        }
    });
}

/// Something that packets see in their order.
pub enum Access {
    Register(usize),
    Random,
}

/// Calls a function with all uses of registers and the stage in which all packets come to them, if there is one: packets
/// that pass a lookup come later than those that do not.
pub fn accesses(list: &[Statement], each: &mut dyn FnMut(Access, Option<usize>)) {
    in_stages(list, Some(0), false, &mut 0, &mut |statement, stage| {
        if let Statement::WriteRegister(register, ..) = statement {
            each(Access::Register(*register), stage);
        }
        statement.expressions(&mut |expr| {
            expressions(expr, &mut |expr| match expr.kind {
                Kind::Register(register, _) => each(Access::Register(register), stage),
                Kind::Random => each(Access::Random, stage),
                _ => {}
            });
        });
    });
}

/// Calls a function with all statements and their stage: the number of the lookup that all packets which come there have
/// passed last. `lookups` is how many there were; in a loop around a lookup (`repeated`) there is no such stage.
fn in_stages<'s>(
    list: &'s [Statement],
    mut stage: Option<usize>,
    repeated: bool,
    lookups: &mut usize,
    each: &mut dyn FnMut(&'s Statement, Option<usize>),
) {
    for statement in list {
        each(statement, stage);
        if let Statement::Apply(_) = statement {
            *lookups += 1;
            stage = (!repeated).then_some(*lookups);
        }
        let around = statement.inner().into_iter().any(has_lookup);
        let repeated = repeated || around && matches!(statement, Statement::Loop(_) | Statement::Machine { .. });
        let inside = stage.filter(|_| !repeated);
        for inner in statement.inner() {
            in_stages(inner, inside, repeated, lookups, each);
        }
        stage = stage.filter(|_| !around);
    }
}
