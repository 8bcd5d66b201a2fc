//! Inference of type arguments from the arguments of a call.

use std::collections::HashMap;

use super::Checker;
use crate::tree::{Expr, ExprKind};
use crate::types::{Ty, Type, Types};

/// Known types of type parameters.
pub type Bindings = HashMap<u32, Ty>;

impl Checker<'_> {
    /// Infers the type parameters `variables` from an argument. The later coercion checks whether the argument fits.
    pub(super) fn infer(&mut self, pattern: Ty, argument: &Expr, variables: &[u32], known: &mut Bindings) {
        if let (ExprKind::Parts(parts), Some(components)) = (&argument.kind, self.list_pattern(pattern, argument)) {
            for (component, part) in components.into_iter().zip(parts) {
                self.infer(component, part, variables, known);
            }
            return;
        }
        self.unify(pattern, argument.ty, variables, known, 0);
    }

    /// The expected types of the elements of a list literal, if the pattern is a generic struct or similar.
    fn list_pattern(&self, pattern: Ty, argument: &Expr) -> Option<Vec<Ty>> {
        if let (Type::Struct(_), Type::Record(names)) = (self.types.get(pattern), self.types.get(argument.ty)) {
            let info = self.types.structure(pattern)?;
            return names
                .iter()
                .map(|(name, _)| Some(info.fields.iter().find(|(field, _)| field == name)?.1))
                .collect();
        }
        match (self.types.get(pattern), &argument.kind) {
            (Type::Variable(_), _) => None,
            (Type::List(element), ExprKind::Parts(parts)) => Some(vec![*element; parts.len()]),
            (Type::Stack(element, _), ExprKind::Parts(parts)) => Some(vec![*element; parts.len()]),
            _ => self.types.components(pattern),
        }
    }

    fn unify(&mut self, pattern: Ty, actual: Ty, variables: &[u32], known: &mut Bindings, depth: u32) {
        if depth > 64 || actual == Types::UNKNOWN || actual == Types::DONT_CARE {
            return;
        }
        let all = |checker: &mut Self, left: Vec<Ty>, right: Vec<Ty>, known: &mut Bindings| {
            for (left, right) in left.into_iter().zip(right) {
                checker.unify(left, right, variables, known, depth + 1);
            }
        };
        match (self.types.get(pattern).clone(), self.types.get(actual).clone()) {
            (Type::Variable(number), other) if variables.contains(&number) => {
                // A type with a width replaces one without.
                let replace = match known.get(&number) {
                    None => true,
                    Some(before) => *before == Types::INT && !matches!(other, Type::Invalid),
                };
                if replace {
                    known.insert(number, actual);
                }
            }
            (Type::Stack(left, _), Type::Stack(right, _)) | (Type::List(left), Type::List(right)) => {
                self.unify(left, right, variables, known, depth + 1);
            }
            (Type::Tuple(left), Type::Tuple(right)) => all(self, left, right, known),
            (Type::Struct(left), Type::Struct(right)) => {
                let (left, right) = (&self.types.structs[left], &self.types.structs[right]);
                if left.declaration == right.declaration {
                    let (left, right) = (left.arguments.clone(), right.arguments.clone());
                    all(self, left, right, known);
                }
            }
            (Type::Extern { declaration, arguments }, Type::Extern { declaration: other, arguments: given })
                if declaration == other =>
            {
                all(self, arguments, given, known)
            }
            (Type::Package { declaration, arguments }, Type::Package { declaration: other, arguments: given })
                if declaration == other =>
            {
                all(self, arguments, given, known);
            }
            (
                Type::Parser { declaration, arguments } | Type::Control { declaration, arguments },
                Type::Parser { declaration: other, arguments: given }
                | Type::Control { declaration: other, arguments: given },
            ) => {
                let wanted = self.apply_types(declaration, &arguments);
                let offered = self.apply_types(other, &given);
                all(self, wanted, offered, known);
            }
            _ => {}
        }
    }

    /// The parameter types of a parser or control with these type arguments.
    pub(super) fn apply_types(&mut self, declaration: usize, arguments: &[Ty]) -> Vec<Ty> {
        let signature = self.apply_signature(declaration);
        let map: Bindings = signature.variables.iter().copied().zip(arguments.iter().copied()).collect();
        signature.parameters.iter().map(|parameter| self.types.substitute(parameter.ty, &map)).collect()
    }
}
