//! Liveness of variables: assignments to dead variables are removed, and only variables that are live after a lookup
//! are kept in the packet's state.

use std::collections::{HashMap, HashSet};

use super::unused::has_effect;
use super::visit;
use crate::ir::{Expr, Fused, Id, Kind, Label, MachineId, Resume, StateId, Statement, Var};

/// Removes dead assignments, and finds the variables that are live after a lookup.
pub fn keep_what_lives(fused: &mut Fused) {
    let program = &mut fused.program;
    let none = VarSet::none(program.variables.len());
    let mut live =
        Live { labels: HashMap::new(), states: HashMap::new(), kept: none.clone(), none: none.clone(), removing: true };
    let mut body = std::mem::take(&mut program.parts[0].body);
    live.list(&mut body, none);
    program.parts[0].body = body;
    fused.kept = live.kept.iter().collect();
}

/// A set of variables, with a bit for each variable of the program.
#[derive(Clone)]
struct VarSet(Vec<u64>);

impl VarSet {
    /// The empty set, with room for `count` variables.
    fn none(count: usize) -> Self {
        VarSet(vec![0; count.div_ceil(64)])
    }

    /// The word and the bit of a variable.
    fn place(variable: Var) -> (usize, u64) {
        (variable.index() / 64, 1 << (variable.index() % 64))
    }

    fn has(&self, variable: Var) -> bool {
        let (word, bit) = Self::place(variable);
        self.0[word] & bit != 0
    }

    fn iter(&self) -> impl Iterator<Item = Var> {
        (0..self.0.len() * 64).map(Var::new).filter(|variable| self.has(*variable))
    }

    fn add(&mut self, variable: Var) {
        let (word, bit) = Self::place(variable);
        self.0[word] |= bit;
    }

    fn remove(&mut self, variable: Var) {
        let (word, bit) = Self::place(variable);
        self.0[word] &= !bit;
    }

    /// Adds another set. Returns true if this one grows.
    fn unite(&mut self, other: &VarSet) -> bool {
        let mut grows = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            grows |= *other & !*word != 0;
            *word |= other;
        }
        grows
    }
}

struct Live {
    /// The empty set.
    none: VarSet,
    /// The variables that are live at the ends of blocks, and at the starts of parser states.
    labels: HashMap<Label, VarSet>,
    states: HashMap<(MachineId, StateId), VarSet>,
    kept: VarSet,
    /// True once the analysis is complete and dead assignments are removed.
    removing: bool,
}

impl Live {
    fn none(&self) -> VarSet {
        self.none.clone()
    }

    /// The variables that are live before a list of statements; `after` are those live after it.
    fn list(&mut self, list: &mut Vec<Statement>, after: VarSet) -> VarSet {
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
    fn statement(&mut self, statement: &mut Statement, mut live: VarSet) -> (bool, VarSet) {
        match statement {
            Statement::Set(place, value) => {
                if !live.has(place.root) && !has_effect(value) {
                    return (false, live);
                }
                if place.steps.is_empty() {
                    live.remove(place.root);
                }
                place.indices(&mut |index| uses(index, &mut live));
                uses(value, &mut live);
            }
            Statement::Locate(base, _) => {
                let needed = live.has(*base);
                live.remove(*base);
                return (needed, live);
            }
            Statement::If(condition, then, otherwise) => {
                let mut before = self.list(then, live.clone());
                before.unite(&self.list(otherwise, live));
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
                    head.unite(&before)
                });
                let before = self.list(body, head);
                return (true, before);
            }
            Statement::Machine { number, states, start, timeout } => {
                self.until_it_rests(|live| {
                    let mut grows = false;
                    for place in states.ids().rev() {
                        let mut before = live.list(&mut states[place].body, live.none());
                        let late = live.list(timeout, live.none());
                        before.unite(&late);
                        let none = live.none();
                        grows |= live.states.entry((*number, place)).or_insert(none).unite(&before);
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
                    before.unite(&self.list(action, live.clone()));
                }
                for variable in [&mut apply.hit, &mut apply.chosen] {
                    if let Some(number) = *variable {
                        if self.removing && !before.has(number) {
                            *variable = None;
                        }
                        before.remove(number);
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
                self.kept.unite(&live);
                *kept = live.iter().collect();
            }
            Statement::Drop | Statement::Lose => return (true, self.none()),
            Statement::Send(_, headers) => {
                for base in headers.iter().flatten().filter_map(|header| header.base) {
                    live.add(base);
                }
                statement.expressions(&mut |expr| uses(expr, &mut live));
            }
            other => other.expressions(&mut |expr| uses(expr, &mut live)),
        }
        (true, live)
    }

    /// Records what is live where a packet continues. Fields of the packet are loaded again there, so they are not live
    /// before.
    fn goes_on(&mut self, resume: &mut Resume, live: &mut VarSet) {
        let fields: Vec<&(Var, Expr)> = resume.fields.iter().filter(|(variable, _)| live.has(*variable)).collect();
        fields.iter().for_each(|(_, field)| uses(field, live));
        resume.kept = live.iter().collect();
        fields.iter().for_each(|(variable, _)| live.remove(*variable));
        self.kept.unite(live);
    }

    fn note_label(&mut self, label: Label, live: &VarSet) {
        let none = self.none();
        self.labels.entry(label).or_insert(none).unite(live);
    }

    /// Repeats an analysis without removal until it finds nothing new.
    fn until_it_rests(&mut self, mut once: impl FnMut(&mut Self) -> bool) {
        let removing = std::mem::replace(&mut self.removing, false);
        while once(self) {}
        self.removing = removing;
    }
}

/// Adds the variables that an expression reads.
fn uses(expr: &Expr, live: &mut VarSet) {
    visit::expressions(expr, &mut |expr| match &expr.kind {
        Kind::Read(place) => live.add(place.root),
        Kind::Field(base, _) => live.add(*base),
        _ => {}
    });
}
