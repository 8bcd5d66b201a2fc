//! Removes variables that are written and never read, headers and metadata included.

use std::collections::HashSet;

use super::visit;
use crate::ir::{Expr, Kind, Program, Statement, Var};

pub fn remove(program: &mut Program) {
    loop {
        let mut read: HashSet<Var> = HashSet::new();
        for part in &program.parts {
            visit::statements(&part.body, &mut |statement| {
                visit::variables(statement, &mut |variable, reads| {
                    if reads {
                        read.insert(variable);
                    }
                });
            });
        }
        let mut removed = 0;
        for part in &mut program.parts {
            removed += statements(&mut part.body, &read);
        }
        if removed == 0 {
            return;
        }
    }
}

/// True if evaluating the expression changes state: only random numbers and meters do.
pub fn has_effect(value: &Expr) -> bool {
    let mut found = false;
    visit::expressions(value, &mut |expr| found |= matches!(expr.kind, Kind::Random | Kind::Meter(..)));
    found
}

/// Removes assignments to variables that are never read.
fn statements(list: &mut Vec<Statement>, read: &HashSet<Var>) -> usize {
    let count = list.len();
    // The traffic manager also reads the variables of a packet.
    let dead = |variable: Var| variable > Var::STANDARD && !read.contains(&variable);
    list.retain(|statement| match statement {
        Statement::Set(place, value) => !dead(place.root) || has_effect(value),
        Statement::If(_, then, otherwise) => !(then.is_empty() && otherwise.is_empty()),
        Statement::Block(_, body) => !body.is_empty(),
        _ => true,
    });
    let mut removed = count - list.len();
    for statement in list {
        if let Statement::Apply(apply) = statement {
            for variable in [&mut apply.hit, &mut apply.chosen] {
                if variable.is_some_and(dead) {
                    *variable = None;
                    removed += 1;
                }
            }
        }
        for inner in statement.inner_mut() {
            removed += statements(inner, read);
        }
    }
    removed
}
