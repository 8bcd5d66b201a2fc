//! Evaluates constant expressions, and removes branches that are never taken.

use namehop_p4_lang::check::{binary_value, cast_value, unary_value};
use namehop_p4_lang::syntax::Binary;
use namehop_p4_lang::types::Types;
use namehop_p4_lang::value::{self, Value};

use crate::ir::{Expr, Kind, Program, Statement};

pub fn fold(program: &mut Program, types: &Types) {
    for part in &mut program.parts {
        statements(&mut part.body, types);
    }
}

fn statements(list: &mut Vec<Statement>, types: &Types) {
    let before = std::mem::take(list);
    for mut statement in before {
        statement.change(&mut |expr| {
            if let Some(kind) = folded(expr, types) {
                expr.kind = kind;
            }
        });
        for inner in statement.inner_mut() {
            statements(inner, types);
        }
        match statement {
            Statement::If(condition, then, otherwise) => match condition.kind {
                Kind::Const(value) => list.extend(if value.truth() { then } else { otherwise }),
                _ if then.is_empty() && otherwise.is_empty() => {}
                _ => list.push(Statement::If(condition, then, otherwise)),
            },
            other => {
                let ends = matches!(other, Statement::Jump(_) | Statement::Goto { .. } | Statement::Lose);
                list.push(other);
                if ends {
                    // Statements after a jump are never reached.
                    break;
                }
            }
        }
        if matches!(list.last(), Some(Statement::Jump(_) | Statement::Goto { .. } | Statement::Lose)) {
            break;
        }
    }
}

fn constant(expr: &Expr) -> Option<&Value> {
    match &expr.kind {
        Kind::Const(value) => Some(value),
        _ => None,
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Member(_))
}

/// A simpler form of the expression, if there is one.
pub fn folded(expr: &Expr, types: &Types) -> Option<Kind> {
    match &expr.kind {
        Kind::Unary(operator, inner) => {
            let value = constant(inner)?;
            Some(Kind::Const(unary_value(types, *operator, value, expr.ty)))
        }
        Kind::Cast(inner) => {
            let value = constant(inner).filter(|value| is_scalar(value))?;
            Some(Kind::Const(cast_value(types, value, expr.ty)))
        }
        Kind::Slice(inner, high, low) => {
            Some(Kind::Const(Value::Int(value::slice(&constant(inner)?.int(), *high, *low))))
        }
        Kind::Choice(condition, yes, no) => {
            let chosen = if constant(condition)?.truth() { yes } else { no };
            (chosen.ty == expr.ty).then(|| chosen.kind.clone())
        }
        Kind::Binary(operator, left, right) => {
            match (operator, constant(left), constant(right)) {
                (Binary::And, Some(Value::Bool(true)), _) | (Binary::Or, Some(Value::Bool(false)), _) => {
                    return Some(right.kind.clone());
                }
                (Binary::And, Some(Value::Bool(false)), _) | (Binary::And, _, Some(Value::Bool(false))) => {
                    return Some(Kind::Const(Value::Bool(false)));
                }
                (Binary::Or, Some(Value::Bool(true)), _) | (Binary::Or, _, Some(Value::Bool(true))) => {
                    return Some(Kind::Const(Value::Bool(true)));
                }
                (Binary::And, _, Some(Value::Bool(true))) | (Binary::Or, _, Some(Value::Bool(false))) => {
                    return Some(left.kind.clone());
                }
                _ => {}
            }
            let (one, other) = (constant(left)?, constant(right)?);
            if !is_scalar(one) || !is_scalar(other) {
                return None;
            }
            let width = types.representation(right.ty).map_or(0, |(width, _)| width);
            let value =
                binary_value(types, *operator, one, other, left.ty, width).unwrap_or_else(|_| types.zero(expr.ty));
            Some(Kind::Const(value))
        }
        _ => None,
    }
}
