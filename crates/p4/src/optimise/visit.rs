//! Ways through the statements of a program.

use std::collections::{HashMap, HashSet};

use crate::ir::{Expr, Kind, Statement, Var};

/// Calls a function with all statements, those in statements too.
pub fn statements(list: &[Statement], each: &mut dyn FnMut(&Statement)) {
    for statement in list {
        each(statement);
        for inner in statement.inner() {
            statements(inner, each);
        }
    }
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

/// Calls a function with all uses of registers and the segment in which they are.
pub fn accesses(list: &[Statement], each: &mut dyn FnMut(Access, Option<usize>)) {
    with_segments(list, &mut 0, false, &mut |statement, segment| {
        if let Statement::WriteRegister(register, ..) = statement {
            each(Access::Register(*register), segment);
        }
        statement.expressions(&mut |expr| {
            expressions(expr, &mut |expr| match expr.kind {
                Kind::Register(register, _) => each(Access::Register(register), segment),
                Kind::Random => each(Access::Random, segment),
                _ => {}
            });
        });
    });
}
