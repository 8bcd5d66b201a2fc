//! Traversals of the statements of a program.

use std::collections::{HashMap, HashSet};

use crate::ir::{Expr, Kind, Program, RegisterId, Statement, Var};

/// Calls a function with all statements, including nested ones.
pub fn statements(list: &[Statement], each: &mut dyn FnMut(&Statement)) {
    for statement in list {
        each(statement);
        for inner in statement.inner() {
            statements(inner, each);
        }
    }
}

/// True if the position in the packet is at a byte boundary wherever it is read.
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

/// Calls a function with an expression and all of its parts.
pub fn expressions(expr: &Expr, each: &mut dyn FnMut(&Expr)) {
    each(expr);
    expr.parts(&mut |part| expressions(part, each));
}

/// Calls a function with the variables that a statement reads (true) or writes, also in part (false), without nested
/// statements.
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

/// True if a stage ends in a list.
pub fn has_stages(list: &[Statement]) -> bool {
    let mut found = false;
    statements(list, &mut |statement| found |= statement.ends_stage());
    found
}

/// Calls a function with all statements and their segment: the number of stages that end before them. Statements in
/// loops that contain stages belong to several segments and have `None`.
fn with_segments<'s>(
    list: &'s [Statement],
    segment: &mut usize,
    several: bool,
    each: &mut dyn FnMut(&'s Statement, Option<usize>),
) {
    for statement in list {
        let here = (!several).then_some(*segment);
        each(statement, here);
        if statement.ends_stage() {
            *segment += 1;
        }
        let several = several || matches!(statement, Statement::Loop(body) if has_stages(body));
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

/// A use of something through which packets can observe their order.
pub enum Access {
    Register(RegisterId),
    Random,
}

/// Calls a function with all uses of registers and random numbers, and the stage in which all packets reach them, if
/// there is one: packets that pass a lookup, or are encrypted, arrive later than others.
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

/// Calls a function with all statements and their stage: the number of the last stage end that all packets arriving
/// there have passed. `ends` counts the stage ends so far. In a loop around a stage end (`repeated`), there is no such
/// stage.
fn in_stages<'s>(
    list: &'s [Statement],
    mut stage: Option<usize>,
    repeated: bool,
    ends: &mut usize,
    each: &mut dyn FnMut(&'s Statement, Option<usize>),
) {
    for statement in list {
        each(statement, stage);
        if statement.ends_stage() {
            *ends += 1;
            stage = (!repeated).then_some(*ends);
        }
        let around = statement.inner().into_iter().any(has_stages);
        let repeated = repeated || around && matches!(statement, Statement::Loop(_) | Statement::Machine { .. });
        let inside = stage.filter(|_| !repeated);
        for inner in statement.inner() {
            in_stages(inner, inside, repeated, ends, each);
        }
        stage = stage.filter(|_| !around);
    }
}
