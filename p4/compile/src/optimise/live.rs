//! Liveness of variables: assignments to dead variables are removed, and only variables that are live after a lookup
//! are kept in the packet's state.

use std::collections::{HashMap, HashSet};

use super::unused::has_effect;
use super::visit;
use crate::ir::{Expr, Kind, Label, Program, Resume, Statement, Var};

/// Removes dead assignments. Returns the variables that are live after a lookup.
pub fn keep_what_lives(program: &mut Program) -> HashSet<Var> {
    let mut live = Live { words: program.variables.len().div_ceil(64), ..Live::default() };
    live.kept = live.none();
    let mut body = std::mem::take(&mut program.parts[0].body);
    live.removing = true;
    let none = live.none();
    live.list(&mut body, none);
    program.parts[0].body = body;
    listed(&live.kept).into_iter().collect()
}

/// A set of variables, as a bit set.
type Set = Vec<u64>;

fn has(set: &Set, variable: Var) -> bool {
    set[variable / 64] >> (variable % 64) & 1 == 1
}

fn listed(set: &Set) -> Vec<Var> {
    (0..set.len() * 64).filter(|variable| has(set, *variable)).collect()
}

fn add(set: &mut Set, variable: Var) {
    set[variable / 64] |= 1 << (variable % 64);
}

fn remove(set: &mut Set, variable: Var) {
    set[variable / 64] &= !(1 << (variable % 64));
}

/// Adds the second set to the first. Returns true if the first grows.
fn unite(set: &mut Set, other: &Set) -> bool {
    let mut grows = false;
    for (word, other) in set.iter_mut().zip(other) {
        grows |= *other & !*word != 0;
        *word |= other;
    }
    grows
}

#[derive(Default)]
struct Live {
    words: usize,
    /// The variables that are live at the ends of blocks, and at the starts of parser states.
    labels: HashMap<Label, Set>,
    states: HashMap<(usize, usize), Set>,
    kept: Set,
    /// True once the analysis is complete and dead assignments are removed.
    removing: bool,
}

impl Live {
    fn none(&self) -> Set {
        vec![0; self.words]
    }

    /// The variables that are live before a list of statements; `after` are those live after it.
    fn list(&mut self, list: &mut Vec<Statement>, after: Set) -> Set {
        let mut live = after;
        let mut dead = Vec::new();
        for (at, statement) in list.iter_mut().enumerate().rev() {
            let (needed, before) = self.statement(statement, live);
            live = before;
            if !needed {
                dead.push(at);
            }
        }
        if self.removing && !dead.is_empty() {
            let dead: HashSet<usize> = dead.into_iter().collect();
            let mut at = 0;
            list.retain(|_| {
                at += 1;
                !dead.contains(&(at - 1))
            });
        }
        live
    }

    /// Whether a statement is needed, and the variables that are live before it.
    fn statement(&mut self, statement: &mut Statement, mut live: Set) -> (bool, Set) {
        match statement {
            Statement::Set(place, value) => {
                if !has(&live, place.root) && !has_effect(value) {
                    return (false, live);
                }
                if place.steps.is_empty() {
                    remove(&mut live, place.root);
                }
                place.indices(&mut |index| uses(index, &mut live));
                uses(value, &mut live);
            }
            Statement::Locate(base, _) => {
                let needed = has(&live, *base);
                remove(&mut live, *base);
                return (needed, live);
            }
            Statement::If(condition, then, otherwise) => {
                let mut before = self.list(then, live.clone());
                unite(&mut before, &self.list(otherwise, live));
                let needed = !then.is_empty() || !otherwise.is_empty() || has_effect(condition);
                if needed {
                    uses(condition, &mut before);
                }
                return (needed, before);
            }
            Statement::Block(label, body) => {
                self.note_label(*label, &live);
                let before = self.list(body, live);
                return (!body.is_empty(), before);
            }
            Statement::Jump(label) => return (true, self.labels.get(label).cloned().unwrap_or_else(|| self.none())),
            Statement::Goto { machine, state } => {
                return (true, self.states.get(&(*machine, *state)).cloned().unwrap_or_else(|| self.none()));
            }
            Statement::Loop(body) => {
                let mut head = self.none();
                self.until_it_rests(|live| {
                    let before = live.list(body, head.clone());
                    unite(&mut head, &before)
                });
                let before = self.list(body, head);
                return (true, before);
            }
            Statement::Machine { number, states, start, timeout } => {
                self.until_it_rests(|live| {
                    let mut grows = false;
                    for place in (0..states.len()).rev() {
                        let mut before = live.list(&mut states[place].body, live.none());
                        let late = live.list(timeout, live.none());
                        unite(&mut before, &late);
                        let none = live.none();
                        grows |= unite(live.states.entry((*number, place)).or_insert(none), &before);
                    }
                    grows
                });
                for state in states.iter_mut() {
                    let none = self.none();
                    self.list(&mut state.body, none);
                }
                let none = self.none();
                self.list(timeout, none);
                return (true, self.states.get(&(*number, *start)).cloned().unwrap_or_else(|| self.none()));
            }
            Statement::Apply(apply) => {
                let mut before = live.clone();
                for action in &mut apply.actions {
                    unite(&mut before, &self.list(action, live.clone()));
                }
                for variable in [&mut apply.hit, &mut apply.chosen] {
                    if let Some(number) = *variable {
                        if self.removing && !has(&before, number) {
                            *variable = None;
                        }
                        remove(&mut before, number);
                    }
                }
                self.goes_on(&mut apply.resume, &mut before);
                live = before;
                apply.keys.iter().for_each(|key| uses(key, &mut live));
            }
            Statement::Cipher(cipher) => {
                self.goes_on(&mut cipher.resume, &mut live);
                statement.expressions(&mut |expr| uses(expr, &mut live));
            }
            Statement::Barrier(kept) => {
                unite(&mut self.kept, &live);
                *kept = listed(&live);
            }
            Statement::Drop | Statement::Lose => return (true, self.none()),
            Statement::Send(_, headers) => {
                for base in headers.iter().flatten().filter_map(|header| header.base) {
                    add(&mut live, base);
                }
                statement.expressions(&mut |expr| uses(expr, &mut live));
            }
            other => other.expressions(&mut |expr| uses(expr, &mut live)),
        }
        (true, live)
    }

    /// Records what is live where a packet continues. Fields of the packet are loaded again there, so they are not live
    /// before.
    fn goes_on(&mut self, resume: &mut Resume, live: &mut Set) {
        let fields: Vec<&(Var, Expr)> = resume.fields.iter().filter(|(variable, _)| has(live, *variable)).collect();
        fields.iter().for_each(|(_, field)| uses(field, live));
        resume.kept = listed(live);
        fields.iter().for_each(|(variable, _)| remove(live, *variable));
        unite(&mut self.kept, live);
    }

    fn note_label(&mut self, label: Label, live: &Set) {
        let none = self.none();
        unite(self.labels.entry(label).or_insert(none), live);
    }

    /// Repeats an analysis without removal until it finds nothing new.
    fn until_it_rests(&mut self, mut once: impl FnMut(&mut Self) -> bool) {
        let removing = std::mem::replace(&mut self.removing, false);
        while once(self) {}
        self.removing = removing;
    }
}

/// Adds the variables that an expression reads.
fn uses(expr: &Expr, live: &mut Set) {
    visit::expressions(expr, &mut |expr| match &expr.kind {
        Kind::Read(place) => add(live, place.root),
        Kind::Field(base, _) => add(live, *base),
        _ => {}
    });
}
