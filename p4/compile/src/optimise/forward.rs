//! Propagates copies: a variable that is only ever set to another variable, a constant or a field of the packet is
//! replaced by that. A checksum over a list of known values is computed directly from these.

use std::collections::HashMap;

use namehop_p4_lang::types::Types;

use super::fuse::fixed_width;
use super::visit;
use crate::ir::{Expr, Kind, Program, Sink, Statement, Var};

/// The number of the Internet checksum in `HashAlgorithm`.
const SUM: u64 = 6;

pub fn forward(program: &mut Program, types: &Types) {
    let mut body = std::mem::take(&mut program.parts[0].body);
    let mut order = Order::new(program, types);
    order.list(&body);
    let known = order.copies();
    replace(&mut body, &known);
    sums(&mut body, types);
    program.parts[0].body = body;
}

/// Positions at which variables are set, counted in statements in program order.
struct Order<'a> {
    types: &'a Types,
    program: &'a Program,
    at: usize,
    loops: usize,
    /// For each variable: how often it is set, the last position, and the value.
    sets: HashMap<Var, (usize, usize, Option<Expr>)>,
    located: usize,
}

impl<'a> Order<'a> {
    fn new(program: &'a Program, types: &'a Types) -> Self {
        Order { types, program, at: 0, loops: 0, sets: HashMap::new(), located: 0 }
    }

    fn note(&mut self, variable: Var, value: Option<&Expr>) {
        let at = self.at;
        let entry = self.sets.entry(variable).or_insert((0, 0, None));
        *entry = (entry.0 + 1, at, value.cloned());
    }

    fn list(&mut self, list: &[Statement]) {
        for statement in list {
            self.at += 1;
            let around = matches!(statement, Statement::Loop(_) | Statement::Machine { .. });
            self.loops += usize::from(around);
            match statement {
                Statement::Set(place, value) => {
                    let plain = place.steps.is_empty() && self.loops == 0 && value.ty == place.ty;
                    self.note(place.root, plain.then_some(value));
                }
                Statement::Locate(..) => self.located = self.at,
                Statement::Apply(apply) => {
                    for variable in [apply.hit, apply.chosen].into_iter().flatten() {
                        self.note(variable, None);
                    }
                }
                _ => {}
            }
            for inner in statement.inner() {
                self.list(inner);
            }
            if around {
                // A variable set in a loop may be set again after any statement of the loop.
                self.at += 1;
                self.loops -= 1;
            }
        }
    }

    /// Variables that are set once, to a value that does not change afterwards.
    fn copies(&self) -> HashMap<Var, Kind> {
        let mut list: Vec<(usize, Var, &Expr)> = Vec::new();
        for (variable, (count, at, value)) in &self.sets {
            if let (1, Some(value)) = (count, value) {
                list.push((*at, *variable, value));
            }
        }
        list.sort_by_key(|(at, ..)| *at);
        let mut known: HashMap<Var, Kind> = HashMap::new();
        for (at, variable, value) in list {
            let scalar = self.types.components(self.types.stripped(value.ty)).is_none()
                && fixed_width(self.types, value.ty).is_some_and(|width| width > 0);
            let kind = match &value.kind {
                Kind::Const(_) if scalar => Some(value.kind.clone()),
                Kind::Field(..) if scalar && self.located < at => Some(value.kind.clone()),
                Kind::Read(place) if scalar && place.steps.is_empty() => {
                    let stays = self.sets.get(&place.root).is_some_and(|(_, last, _)| *last < at);
                    let same = self.program.variables[place.root].ty == value.ty;
                    (stays && same).then(|| known.get(&place.root).cloned().unwrap_or_else(|| value.kind.clone()))
                }
                _ => None,
            };
            known.extend(kind.map(|kind| (variable, kind)));
        }
        known
    }
}

fn replace(list: &mut [Statement], known: &HashMap<Var, Kind>) {
    for statement in list {
        statement.change(&mut |expr| {
            if let Kind::Read(place) = &expr.kind
                && place.steps.is_empty()
                && let Some(kind) = known.get(&place.root)
            {
                expr.kind = kind.clone();
            }
        });
        for inner in statement.inner_mut() {
            replace(inner, known);
        }
    }
}

/// Replaces a checksum over a data list by one over the values that are appended directly before it.
fn sums(list: &mut Vec<Statement>, types: &Types) {
    let mut values: Option<Vec<Expr>> = None;
    let mut begin = 0;
    for mut statement in std::mem::take(list) {
        for inner in statement.inner_mut() {
            sums(inner, types);
        }
        match &statement {
            Statement::BeginData => {
                values = Some(Vec::new());
                begin = list.len();
            }
            Statement::Append(Sink::Data, value) if fixed_width(types, value.ty).is_some() => {
                values.iter_mut().for_each(|values| values.push(value.clone()));
            }
            _ => {
                if let Some(values) = values.take()
                    && uses_of_sum(&statement) == 1
                {
                    list.truncate(begin);
                    statement.change(&mut |expr| {
                        if is_sum(expr) {
                            expr.kind = Kind::Sum(values.clone());
                        }
                    });
                }
            }
        }
        list.push(statement);
    }
}

fn is_sum(expr: &Expr) -> bool {
    let is_sum = |algorithm: &Expr| matches!(&algorithm.kind, Kind::Const(value) if value.number() == SUM);
    matches!(&expr.kind, Kind::Hash(algorithm) if is_sum(algorithm))
}

fn uses_of_sum(statement: &Statement) -> usize {
    let mut count = 0;
    statement.expressions(&mut |expr| {
        visit::expressions(expr, &mut |expr| count += usize::from(is_sum(expr)));
    });
    count
}
