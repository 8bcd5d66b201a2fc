//! Splits structs, headers and tuples: a part that is only used separately becomes its own variable.

use std::collections::{HashMap, HashSet};

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::{Ty, Types};
use namehop_p4_lang::value::Value;

use super::fuse::fixed_width;
use super::visit;
use crate::ir::{Expr, Fused, HeaderParts, IndexVec, Kind, Place, Statement, Step, Var, Variable};

/// Variables with more parts stay whole.
const MOST_PARTS: u64 = 1024;

/// Splits all variables. Lists the headers with fields of fixed widths.
pub fn split(fused: &mut Fused, types: &Types) {
    let program = &mut fused.program;
    let mut body = std::mem::take(&mut program.parts[0].body);
    let mut expander = Expander { types, variables: std::mem::take(&mut program.variables) };
    expander.list(&mut body);
    let mut splitter = Splitter {
        types,
        variables: expander.variables,
        whole: HashSet::new(),
        moved: HashMap::new(),
        valid: HashMap::new(),
        headers: Vec::new(),
    };
    splitter.find_whole(&body);
    for root in splitter.variables.ids() {
        let Variable { name, ty } = splitter.variables[root].clone();
        splitter.take_apart(root, &mut Vec::new(), ty, &name);
    }
    splitter.rename(&mut body);
    program.parts[0].body = body;
    program.variables = splitter.variables;
    fused.headers = splitter.headers;
}

/// The types of the parts of structs and similar types.
fn parts_of(types: &Types, ty: Ty) -> Option<Vec<Ty>> {
    let ty = types.stripped(ty);
    types.components(ty).filter(|_| types.leaves(ty) <= MOST_PARTS)
}

fn is_header(types: &Types, ty: Ty) -> bool {
    types.is_kind(types.stripped(ty), StructKind::Header)
}

/// Turns assignments of whole values into assignments of their parts.
struct Expander<'a> {
    types: &'a Types,
    variables: IndexVec<Var, Variable>,
}

impl Expander<'_> {
    fn list(&mut self, list: &mut Vec<Statement>) {
        for mut statement in std::mem::take(list) {
            for inner in statement.inner_mut() {
                self.list(inner);
            }
            match statement {
                Statement::Set(place, value) => self.set(place, value, list),
                other => list.push(other),
            }
        }
    }

    fn set(&mut self, place: Place, value: Expr, list: &mut Vec<Statement>) {
        let types = self.types;
        let Some(parts) = parts_of(types, place.ty) else {
            list.push(Statement::Set(place, value));
            return;
        };
        let header = is_header(types, place.ty);
        let part = |number: usize, ty: Ty| place.step(Step::Field(number), ty);
        let valid = place.step(Step::Valid, Types::BOOL);
        let truth = |truth| Expr::constant(Value::Bool(truth), Types::BOOL);
        match value.kind {
            Kind::Const(Value::Header { valid: is_valid, fields }) if fields.len() == parts.len() => {
                for (number, (field, ty)) in fields.into_iter().zip(parts).enumerate() {
                    self.set(part(number, ty), Expr::constant(field, ty), list);
                }
                list.push(Statement::Set(valid, truth(is_valid)));
            }
            Kind::Const(Value::Struct(fields)) if fields.len() == parts.len() && !header => {
                for (number, (field, ty)) in fields.into_iter().zip(parts).enumerate() {
                    self.set(part(number, ty), Expr::constant(field, ty), list);
                }
            }
            Kind::Read(from) if types.stripped(from.ty) == types.stripped(place.ty) && !meets(&place, &from) => {
                for (number, ty) in parts.into_iter().enumerate() {
                    self.set(part(number, ty), Expr::read(from.step(Step::Field(number), ty)), list);
                }
                if header {
                    list.push(Statement::Set(valid, Expr::read(from.step(Step::Valid, Types::BOOL))));
                }
            }
            Kind::Parts(values) if values.len() == parts.len() && place.steps.iter().all(is_fixed) => {
                let mut reads = false;
                for value in &values {
                    visit::expressions(value, &mut |expr| {
                        reads |= matches!(&expr.kind, Kind::Read(from) if from.root == place.root);
                    });
                }
                let mut kept = Vec::new();
                for (number, (value, ty)) in values.into_iter().zip(parts).enumerate() {
                    if reads {
                        // All parts are evaluated before the first one is assigned.
                        let part = self.variables.push(Variable { name: "part".into(), ty });
                        let before = Place::variable(part, ty);
                        self.set(before.clone(), value, list);
                        kept.push((number, before));
                    } else {
                        self.set(part(number, ty), value, list);
                    }
                }
                for (number, before) in kept {
                    self.set(part(number, before.ty), Expr::read(before), list);
                }
                if header {
                    list.push(Statement::Set(valid, truth(true)));
                }
            }
            kind => list.push(Statement::Set(place, Expr { kind, ty: value.ty })),
        }
    }
}

fn is_fixed(step: &Step) -> bool {
    !matches!(step, Step::Index(index) if !matches!(index.kind, Kind::Const(_)))
}

/// True if a change of one place may change which place the other one is, or its value.
fn meets(to: &Place, from: &Place) -> bool {
    if !to.disjoint(from) {
        return true;
    }
    let mut meets = false;
    for place in [to, from] {
        place.indices(&mut |index| {
            visit::expressions(index, &mut |expr| {
                meets |= matches!(&expr.kind, Kind::Read(read) if !to.disjoint(read));
            });
        });
    }
    meets
}

struct Splitter<'a> {
    types: &'a Types,
    variables: IndexVec<Var, Variable>,
    /// Places that are used as a whole: the variable and the path of fields.
    whole: HashSet<(Var, Vec<usize>)>,
    /// The variables that now hold the parts.
    moved: HashMap<(Var, Vec<usize>), Var>,
    /// Variables for the validity of headers.
    valid: HashMap<(Var, Vec<usize>), Var>,
    headers: Vec<HeaderParts>,
}

impl Splitter<'_> {
    fn find_whole(&mut self, body: &[Statement]) {
        let mut places: Vec<Place> = Vec::new();
        visit::statements(body, &mut |statement| {
            if let Statement::Set(place, _) | Statement::ReadVarbit(place, _) = statement {
                places.push(place.clone());
            }
            statement.expressions(&mut |expr| {
                visit::expressions(expr, &mut |expr| {
                    if let Kind::Read(place) = &expr.kind {
                        places.push(place.clone());
                    }
                });
            });
        });
        for place in places {
            if place.steps.iter().all(|step| matches!(step, Step::Field(_)))
                && self.types.components(self.types.stripped(place.ty)).is_some()
            {
                self.whole.insert((place.root, fields_of(&place)));
            }
        }
    }

    /// Creates variables for the parts of a place. Returns the variable of a place that is not split.
    fn take_apart(&mut self, root: Var, path: &mut Vec<usize>, ty: Ty, name: &str) -> Option<Var> {
        let types = self.types;
        let parts = if self.whole.contains(&(root, path.clone())) { None } else { parts_of(types, ty) };
        let Some(parts) = parts else {
            if path.is_empty() {
                return None;
            }
            let variable = self.variables.push(Variable { name: name.into(), ty });
            self.moved.insert((root, path.clone()), variable);
            return Some(variable);
        };
        let mut fields = Vec::new();
        let mut offset = 0;
        for (number, part) in parts.iter().enumerate() {
            let field = match types.structure(types.stripped(ty)).and_then(|info| info.fields.get(number)) {
                Some((field, _)) => format!("{name}_{field}"),
                None => format!("{name}_{number}"),
            };
            path.push(number);
            let own = self.take_apart(root, path, *part, &field);
            path.pop();
            let scalar = types.components(types.stripped(*part)).is_none();
            if let (Some(own), Some(width), true) = (own, fixed_width(types, *part), scalar) {
                fields.push((own, offset, width));
                offset += u64::from(width);
            }
        }
        if is_header(types, ty) {
            let valid = self.variables.push(Variable { name: format!("{name}_valid").into(), ty: Types::BOOL });
            self.valid.insert((root, path.clone()), valid);
            if fields.len() == parts.len() {
                self.headers.push(HeaderParts { name: name.to_string(), valid, fields });
            }
        }
        None
    }

    fn rename(&self, list: &mut [Statement]) {
        for statement in list {
            if let Statement::Set(place, _) | Statement::ReadVarbit(place, _) = statement {
                self.place(place);
            }
            statement.change(&mut |expr| {
                if let Kind::Read(place) = &mut expr.kind {
                    self.place(place);
                }
            });
            for inner in statement.inner_mut() {
                self.rename(inner);
            }
        }
    }

    fn place(&self, place: &mut Place) {
        let mut path = Vec::new();
        for (count, step) in place.steps.iter().enumerate() {
            match step {
                Step::Field(field) => path.push(*field),
                Step::Valid => {
                    if let Some(variable) = self.valid.get(&(place.root, path)) {
                        *place = Place::variable(*variable, place.ty);
                    }
                    return;
                }
                _ => return,
            }
            if let Some(variable) = self.moved.get(&(place.root, path.clone())) {
                place.root = *variable;
                place.steps.drain(..=count);
                return;
            }
        }
    }
}

fn fields_of(place: &Place) -> Vec<usize> {
    place.steps.iter().map(|step| if let Step::Field(field) = step { *field } else { usize::MAX }).collect()
}
