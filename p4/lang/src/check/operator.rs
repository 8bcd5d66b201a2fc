//! The types of operators.

use super::Checker;
use super::coerce::binary_value;
use crate::source::Span;
use crate::syntax::ast::{Binary, Unary};
use crate::syntax::number::MAX_WIDTH;
use crate::tree::{Expr, ExprKind};
use crate::types::{Ty, Type, Types};
use crate::value::Value;

impl Checker<'_> {
    /// Gives two operands the same type: a number without a width takes the other's type; a list becomes the other's
    /// struct.
    pub(super) fn same_type(&mut self, left: Expr, right: Expr, span: Span) -> (Expr, Expr) {
        if left.ty == right.ty || left.ty == Types::UNKNOWN || right.ty == Types::UNKNOWN {
            return (left, right);
        }
        let literal = |expr: &Expr| matches!(expr.kind, ExprKind::Parts(_));
        if left.ty == Types::INT || (literal(&left) && !literal(&right)) {
            let right = if left.ty == Types::INT { self.represented(right) } else { right };
            let left = self.coerce(left, right.ty);
            return (left, right);
        }
        if right.ty == Types::INT || literal(&right) {
            let left = if right.ty == Types::INT { self.represented(left) } else { left };
            let right = self.coerce(right, left.ty);
            return (left, right);
        }
        let (left, right) = (self.represented(left), self.represented(right));
        if left.ty != right.ty {
            let message = format!(
                "the two operands have different types, {} and {}",
                self.types.show(left.ty),
                self.types.show(right.ty)
            );
            let help = format!("cast one of them, as in ({})(…)", self.types.show(left.ty));
            self.error_with_help("type", span, message, help);
            return (self.unknown(left.span), self.unknown(right.span));
        }
        (left, right)
    }

    /// Converts a member of a serializable enum to its number; leaves other expressions unchanged.
    pub(super) fn represented(&mut self, expr: Expr) -> Expr {
        if let Type::Enum(number) = self.types.get(expr.ty)
            && let Some((ty, _)) = &self.types.enums[*number].representation
        {
            let ty = *ty;
            return self.coerce(expr, ty);
        }
        expr
    }

    pub(super) fn unary(&mut self, operator: Unary, value: Expr, span: Span) -> Expr {
        if value.ty == Types::UNKNOWN {
            return value;
        }
        let value = self.represented(value);
        let fine = matches!(
            (operator, self.types.get(value.ty)),
            (Unary::Not, Type::Bool)
                | (Unary::Complement, Type::Bits { .. })
                | (Unary::Minus | Unary::Plus, Type::Bits { .. } | Type::Int)
        );
        if !fine {
            let sign = match operator {
                Unary::Not => "!",
                Unary::Complement => "~",
                Unary::Minus => "-",
                Unary::Plus => "+",
            };
            let message = format!("'{sign}' is not defined for {}", self.types.show(value.ty));
            self.error("type", span, message);
            return self.unknown(span);
        }
        let ty = value.ty;
        self.folded(Expr { kind: ExprKind::Unary(operator, Box::new(value)), ty, span })
    }

    pub(super) fn binary(&mut self, operator: Binary, left: Expr, right: Expr, span: Span) -> Expr {
        if left.ty == Types::UNKNOWN || right.ty == Types::UNKNOWN {
            return self.unknown(span);
        }
        let (left, right, ty) = match operator {
            Binary::And | Binary::Or => {
                let left = self.coerce(left, Types::BOOL);
                let right = self.coerce(right, Types::BOOL);
                (left, right, Types::BOOL)
            }
            Binary::Shl | Binary::Shr => return self.shift(operator, left, right, span),
            Binary::Concat => return self.concat(left, right, span),
            Binary::Equal | Binary::NotEqual => {
                let (left, right) = self.same_type(left, right, span);
                if !self.comparable(left.ty) {
                    let message = format!("values of type {} cannot be compared", self.types.show(left.ty));
                    self.error("type", span, message);
                    return self.unknown(span);
                }
                (left, right, Types::BOOL)
            }
            _ => {
                let (left, right) = (self.represented(left), self.represented(right));
                let (left, right) = self.same_type(left, right, span);
                let integer = match self.types.get(left.ty) {
                    Type::Bits { signed, .. } => {
                        if *signed && matches!(operator, Binary::Div | Binary::Mod) {
                            let message = "division is not defined for signed numbers";
                            self.error("type", span, message);
                            return self.unknown(span);
                        }
                        true
                    }
                    Type::Int => !matches!(operator, Binary::SaturatingAdd | Binary::SaturatingSub),
                    Type::Unknown => return self.unknown(span),
                    _ => false,
                };
                if !integer {
                    let message = format!("this operator is not defined for {}", self.types.show(left.ty));
                    self.error("type", span, message);
                    return self.unknown(span);
                }
                let compares =
                    matches!(operator, Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual);
                let ty = if compares { Types::BOOL } else { left.ty };
                (left, right, ty)
            }
        };
        if left.ty == Types::UNKNOWN || right.ty == Types::UNKNOWN {
            return self.unknown(span);
        }
        self.finished(operator, left, right, ty, span)
    }

    /// Builds the expression, or its value if both operands are constant.
    fn finished(&mut self, operator: Binary, left: Expr, right: Expr, ty: Ty, span: Span) -> Expr {
        if matches!(operator, Binary::Div | Binary::Mod)
            && let Some(Value::Int(number)) = self.constant(&right)
            && number == 0.into()
        {
            self.error("arithmetic", span, "division by zero");
            return self.unknown(span);
        }
        if left.ty == Types::INT
            && let (Some(left), Some(right)) = (self.constant(&left), self.constant(&right))
            && let Err(reason) = binary_value(&self.types, operator, &left, &right, Types::INT, 0)
        {
            self.error("arithmetic", span, reason);
            return self.unknown(span);
        }
        self.folded(Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span })
    }

    fn shift(&mut self, operator: Binary, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.represented(left), self.represented(right));
        let known = self.constant(&right);
        let negative = matches!(&known, Some(Value::Int(number)) if *number < 0.into());
        let fine = match (self.types.get(left.ty), self.types.get(right.ty)) {
            (Type::Bits { .. }, Type::Bits { signed, .. }) => !*signed || known.is_some(),
            (Type::Bits { .. }, Type::Int) => true,
            (Type::Int, Type::Int | Type::Bits { .. }) => known.is_some(),
            _ => false,
        };
        if !fine || negative {
            let message = if negative {
                "the shift distance is negative".into()
            } else {
                format!("{} cannot be shifted by {}", self.types.show(left.ty), self.types.show(right.ty))
            };
            let help =
                "the distance must be an unsigned number; a value without a width can be shifted only by a constant";
            self.error_with_help("shift", span, message, help);
            return self.unknown(span);
        }
        let ty = left.ty;
        self.finished(operator, left, right, ty, span)
    }

    fn concat(&mut self, left: Expr, right: Expr, span: Span) -> Expr {
        if left.ty == Types::STRING && right.ty == Types::STRING {
            return self.finished(Binary::Concat, left, right, Types::STRING, span);
        }
        let (left, right) = (self.represented(left), self.represented(right));
        match (self.types.integer(left.ty), self.types.integer(right.ty)) {
            (Some((width, signed)), Some((other, _))) if width + other <= MAX_WIDTH => {
                let ty = self.types.bits(width + other, signed);
                self.finished(Binary::Concat, left, right, ty, span)
            }
            (Some(_), Some(_)) => {
                self.error("width", span, format!("the result has more than {MAX_WIDTH} bits"));
                self.unknown(span)
            }
            _ => {
                let help = "both sides need a width, as in 8w1 ++ 8w2";
                self.error_with_help("type", span, "'++' joins values of types bit<N> and int<N>", help);
                self.unknown(span)
            }
        }
    }

    fn comparable(&self, ty: Ty) -> bool {
        match self.types.get(ty) {
            Type::Void
            | Type::Extern { .. }
            | Type::Parser { .. }
            | Type::Control { .. }
            | Type::Package { .. }
            | Type::Table(_)
            | Type::Applied(_)
            | Type::DontCare => false,
            Type::Struct(number) => self.types.structs[*number].fields.iter().all(|(_, ty)| self.comparable(*ty)),
            _ => true,
        }
    }
}
