//! Shares hashes between lookups: if a key begins with the previous lookup's key, as for increasingly long prefixes of
//! a name, that part is not hashed again.

use crate::ir::{Apply, Expr, IndexVec, Kind, Place, Program, Statement, Step, Table, TableId, TableKind, Var};
use crate::optimise::visit;

/// The parts of a key, in the order in which they are hashed, with their widths in bits.
type Key = Vec<(Expr, u32)>;

/// Finds for each lookup how much of its key the previous lookup has hashed, on all paths that lead there.
pub fn share(program: &mut Program) {
    for part in &mut program.parts {
        list(&program.tables, &mut part.body, &mut None);
    }
}

/// Walks through statements with the key that was hashed last, if it is known and its parts have not changed since.
fn list(tables: &IndexVec<TableId, Table>, statements: &mut [Statement], hashed: &mut Option<Key>) {
    for statement in statements {
        match statement {
            Statement::Set(place, _) | Statement::ReadVarbit(place, _) => forget(hashed, place),
            Statement::Locate(base, _) => forget_variable(hashed, *base),
            Statement::If(_, then, otherwise) => {
                let mut other = hashed.clone();
                list(tables, then, hashed);
                list(tables, otherwise, &mut other);
                join(hashed, other);
            }
            Statement::Block(_, body) => {
                list(tables, body, hashed);
                let mut jumps = false;
                visit::statements(body, &mut |statement| jumps |= matches!(statement, Statement::Jump(_)));
                if jumps {
                    *hashed = None;
                }
            }
            Statement::Loop(body) => {
                list(tables, body, &mut None);
                *hashed = None;
            }
            Statement::Machine { states, timeout, .. } => {
                for state in states.iter_mut() {
                    list(tables, &mut state.body, &mut None);
                }
                list(tables, timeout, &mut None);
                *hashed = None;
            }
            Statement::Apply(apply) => lookup(tables, apply, hashed),
            Statement::Cipher(_) => *hashed = None,
            _ => {}
        }
    }
}

fn lookup(tables: &IndexVec<TableId, Table>, apply: &mut Apply, hashed: &mut Option<Key>) {
    let table = &tables[apply.table];
    let key = key_of(table, apply);
    let begun = match (&key, &*hashed) {
        (Some(key), Some(before)) if key.starts_with(before) => before.iter().map(|(_, width)| width).sum(),
        _ => 0,
    };
    apply.hashed = begun / 64;
    *hashed = key;
    for variable in [apply.hit, apply.chosen].into_iter().flatten() {
        forget_variable(hashed, variable);
    }
    let before = hashed.clone();
    for action in &mut apply.actions {
        let mut after = before.clone();
        list(tables, action, &mut after);
        join(hashed, after);
    }
}

/// The key of a lookup in a hash table, if it is whole words and consists of values that only assignments can change.
fn key_of(table: &Table, apply: &Apply) -> Option<Key> {
    let bits = table.key_bits();
    let parts = || table.packed().map(|number| (&apply.keys[number], table.keys[number].width));
    let whole = table.kind() == TableKind::Exact && bits > 0 && bits.is_multiple_of(64);
    (whole && parts().all(|(value, _)| is_steady(value)))
        .then(|| parts().map(|(value, width)| (value.clone(), width)).collect())
}

fn is_steady(value: &Expr) -> bool {
    let mut steady = true;
    visit::expressions(value, &mut |part| {
        steady &= match &part.kind {
            Kind::Read(place) => place.steps.iter().all(is_fixed),
            Kind::Const(_) | Kind::Field(..) | Kind::Cast(_) | Kind::Slice(..) => true,
            _ => false,
        };
    });
    steady
}

/// True if the element of a stack is known.
fn is_fixed(step: &Step) -> bool {
    !matches!(step, Step::Index(index) if !matches!(index.kind, Kind::Const(_)))
}

/// Merges two paths: keeps the key only if both have it.
fn join(one: &mut Option<Key>, other: Option<Key>) {
    if *one != other {
        *one = None;
    }
}

fn forget_if(hashed: &mut Option<Key>, changes: impl Fn(&Kind) -> bool) {
    let mut changed = false;
    for (value, _) in hashed.iter().flatten() {
        visit::expressions(value, &mut |part| changed |= changes(&part.kind));
    }
    if changed {
        *hashed = None;
    }
}

fn forget(hashed: &mut Option<Key>, changed: &Place) {
    forget_if(hashed, |kind| match kind {
        Kind::Read(place) => !place.disjoint(changed),
        Kind::Field(base, _) => *base == changed.root,
        _ => false,
    });
}

fn forget_variable(hashed: &mut Option<Key>, changed: Var) {
    forget_if(hashed, |kind| match kind {
        Kind::Read(place) => place.root == changed,
        Kind::Field(base, _) => *base == changed,
        _ => false,
    });
}
