//! Separates the paths through the parser. Each path gets its own copy of the code behind the parser, so that its
//! knowledge of headers (which are valid, and where) is available there, and packets need not carry it along.

use std::collections::HashMap;
use std::rc::Rc;

use namehop_p4_lang::types::Types;

use super::{settle, visit};
use crate::ir::{Fused, Id, IndexVec, Label, Program, State, StateId, Statement};

/// Maximum number of statements of a program with separate paths, and of its stages, which end with lookups and
/// encryption.
const MOST_STATEMENTS: usize = 2000;
const MOST_STAGES: usize = 8;

/// Statements that run next: a list from an index on, then `after`.
struct Rest {
    list: Rc<Vec<Statement>>,
    from: usize,
    after: Next,
    /// Target label of jumps to here.
    label: Option<Label>,
}

type Next = Option<Rc<Rest>>;

/// Propagates known values. If there are few paths through the parser, each path gets its own copy of all that follows.
pub fn separate(fused: &mut Fused, types: &Types) {
    let program = &mut fused.program;
    let whole = program.parts[0].body.clone();
    // If packets must stay in order, all of them have to reach the same stage.
    let apart = if fused.ordered { None } else { apart(program) };
    if let Some(apart) = apart {
        program.parts[0].body = apart;
        settle::settle(program, types);
        if is_short(&program.parts[0].body) {
            return;
        }
    }
    program.parts[0].body = whole;
    settle::settle(program, types);
}

/// The statements of a program of one part with its paths separated. `None` if the parser has loops, or if there would
/// be too many statements.
fn apart(program: &Program) -> Option<Vec<Statement>> {
    let body = &program.parts[0].body;
    let (mut machines, mut labels) = (0, 0);
    visit::statements(body, &mut |statement| match statement {
        Statement::Machine { .. } => machines += 1,
        Statement::Block(number, _) => labels = labels.max(number.index() + 1),
        _ => {}
    });
    if machines != 1 {
        return None;
    }
    let mut paths = Paths { states: Rc::default(), behind: None, passed: Vec::new(), labels, statements: 0 };
    let mut list = Vec::new();
    paths.expand(&Rc::new(body.clone()), 0, &None, &mut list)?;
    Some(list)
}

/// True if the number of stages is within the limit.
fn is_short(list: &[Statement]) -> bool {
    let mut stages = 0;
    visit::statements(list, &mut |statement| stages += usize::from(statement.ends_stage()));
    stages <= MOST_STAGES
}

struct Paths {
    states: Rc<IndexVec<StateId, State>>,
    /// The statements behind the parser.
    behind: Next,
    /// States on the current path.
    passed: Vec<StateId>,
    /// The number of the next free label.
    labels: usize,
    statements: usize,
}

impl Paths {
    /// Appends the statements from an index of a list until the end of the program.
    fn expand(&mut self, list: &Rc<Vec<Statement>>, from: usize, after: &Next, to: &mut Vec<Statement>) -> Option<()> {
        let rest =
            |at: usize, label| Some(Rc::new(Rest { list: Rc::clone(list), from: at + 1, after: after.clone(), label }));
        for (at, statement) in list.iter().enumerate().skip(from) {
            self.statements += 1;
            if self.statements > MOST_STATEMENTS {
                return None;
            }
            match statement {
                Statement::Block(label, body) if has_machine(body) => {
                    return self.expand(&Rc::new(body.clone()), 0, &rest(at, Some(*label)), to);
                }
                Statement::Machine { states, start, .. } => {
                    self.states = Rc::new(states.clone());
                    self.behind = rest(at, None);
                    return self.state(*start, to);
                }
                Statement::Goto { state, .. } => return self.state(*state, to),
                Statement::Jump(label) if behind(after, *label).is_some() => {
                    let next = behind(after, *label)?;
                    return self.expand(&next.list, next.from, &next.after, to);
                }
                Statement::If(condition, then, otherwise) if leaves(then, after) || leaves(otherwise, after) => {
                    let mut branches = [Vec::new(), Vec::new()];
                    for (branch, list) in branches.iter_mut().zip([then, otherwise]) {
                        self.expand(&Rc::new(list.clone()), 0, &rest(at, None), branch)?;
                    }
                    let [then, otherwise] = branches;
                    to.push(Statement::If(condition.clone(), then, otherwise));
                    return Some(());
                }
                other => {
                    if statement.inner().into_iter().any(|inner| leaves(inner, after)) {
                        return None;
                    }
                    let mut copy = other.clone();
                    self.statements += relabel(&mut copy, &mut HashMap::new(), &mut self.labels);
                    let ends =
                        matches!(copy, Statement::Drop | Statement::Lose | Statement::Send(..) | Statement::Jump(_));
                    to.push(copy);
                    if ends {
                        return Some(());
                    }
                }
            }
        }
        match after {
            Some(next) => self.expand(&next.list, next.from, &next.after, to),
            None => Some(()),
        }
    }

    fn state(&mut self, state: StateId, to: &mut Vec<Statement>) -> Option<()> {
        if self.passed.contains(&state) {
            return None;
        }
        self.passed.push(state);
        let states = Rc::clone(&self.states);
        let done = self.expand(&Rc::new(states.get(state)?.body.clone()), 0, &self.behind.clone(), to);
        self.passed.pop();
        done
    }
}

fn has_machine(list: &[Statement]) -> bool {
    let mut found = false;
    visit::statements(list, &mut |statement| found |= matches!(statement, Statement::Machine { .. }));
    found
}

/// The statements that a jump to a label leads to, if it leaves a block that was taken apart.
fn behind(after: &Next, label: Label) -> Next {
    let mut next = after.clone();
    while let Some(rest) = next {
        if rest.label == Some(label) {
            return Some(rest);
        }
        next = rest.after.clone();
    }
    None
}

/// True if a list contains a transition to a state, or a jump out of a block that was taken apart.
fn leaves(list: &[Statement], after: &Next) -> bool {
    let mut found = false;
    visit::statements(list, &mut |statement| {
        found |= match statement {
            Statement::Goto { .. } | Statement::Machine { .. } => true,
            Statement::Jump(label) => behind(after, *label).is_some(),
            _ => false,
        };
    });
    found
}

/// Gives the blocks of a copy new labels. Returns the number of its statements.
fn relabel(statement: &mut Statement, labels: &mut HashMap<Label, Label>, next: &mut usize) -> usize {
    match statement {
        Statement::Block(label, _) => {
            let new = Label::new(*next);
            labels.insert(*label, new);
            *label = new;
            *next += 1;
        }
        Statement::Jump(label) => *label = labels.get(label).copied().unwrap_or(*label),
        _ => {}
    }
    let mut count = 1;
    for inner in statement.inner_mut() {
        count += inner.iter_mut().map(|statement| relabel(statement, labels, next)).sum::<usize>();
    }
    count
}
