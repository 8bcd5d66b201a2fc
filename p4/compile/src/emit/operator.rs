//! Generates operators in C.

use namehop_p4_lang::syntax::{Binary, Unary};
use namehop_p4_lang::types::Ty;

use super::Emitter;
use super::expression::{cut, fit, mask, width_of};
use super::types::Form;
use crate::ir::Expr;

impl Emitter<'_> {
    pub(super) fn unary(&mut self, operator: Unary, inner: &Expr, ty: Ty) -> String {
        if operator == Unary::Not {
            return format!("(!{})", self.expr(inner));
        }
        let text = self.as_type(inner, ty);
        match (self.form(ty), operator) {
            (_, Unary::Plus | Unary::Not) => text,
            (Form::Wide(count, width, signed), Unary::Complement) => {
                fit(&format!("w{count}_not({text})"), count, width, signed)
            }
            (Form::Wide(count, width, signed), Unary::Minus) => {
                fit(&format!("w{count}_neg({text})"), count, width, signed)
            }
            (other, Unary::Complement) => {
                let (width, signed) = width_of(other);
                cut(&format!("~(uint64_t)({text})"), width, signed)
            }
            (other, Unary::Minus) => {
                let (width, signed) = width_of(other);
                cut(&format!("0 - (uint64_t)({text})"), width, signed)
            }
        }
    }

    pub(super) fn binary(&mut self, operator: Binary, left: &Expr, right: &Expr, ty: Ty) -> String {
        match operator {
            Binary::And => return format!("({} && {})", self.expr(left), self.expr(right)),
            Binary::Or => return format!("({} || {})", self.expr(left), self.expr(right)),
            Binary::Equal | Binary::NotEqual => {
                let (one, other) = (self.expr(left), self.as_type(right, left.ty));
                let same = self.declarations.compare(self.types, left.ty, &one, &other);
                return if operator == Binary::Equal { format!("({same})") } else { format!("(!({same}))") };
            }
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                return self.ordered(operator, left, right);
            }
            Binary::Concat => return self.concatenated(left, right, ty),
            Binary::Shl | Binary::Shr => {
                let (text, count) = (self.as_type(left, ty), self.word(right));
                let left_shift = operator == Binary::Shl;
                return match self.form(ty) {
                    Form::Wide(k, width, signed) => {
                        let name = if left_shift {
                            "shl"
                        } else if signed {
                            "sar"
                        } else {
                            "shr"
                        };
                        fit(&format!("w{k}_{name}({text}, {count})"), k, width, signed)
                    }
                    other => match (left_shift, width_of(other)) {
                        (true, (width, signed)) => cut(&format!("p4_shl((uint64_t)({text}), {count})"), width, signed),
                        (false, (_, true)) => format!("p4_sar({text}, {count})"),
                        (false, (_, false)) => format!("p4_shr({text}, {count})"),
                    },
                };
            }
            _ => {}
        }
        let (one, other) = (self.as_type(left, ty), self.as_type(right, ty));
        match self.form(ty) {
            Form::Wide(k, width, signed) => {
                let name = match operator {
                    Binary::Add | Binary::SaturatingAdd => "add",
                    Binary::Sub | Binary::SaturatingSub => "sub",
                    Binary::Mul => "mul",
                    Binary::Div if signed => "sdiv",
                    Binary::Mod if signed => "smod",
                    Binary::Div => "div",
                    Binary::Mod => "mod",
                    Binary::BitAnd => "and",
                    Binary::BitOr => "or",
                    _ => "xor",
                };
                let result = format!("w{k}_{name}({one}, {other})");
                if matches!(operator, Binary::SaturatingAdd | Binary::SaturatingSub) {
                    return format!("w{k}_sat({result}, {width}, {signed})");
                }
                fit(&result, k, width, signed)
            }
            narrow => {
                let (width, signed) = width_of(narrow);
                let plain = |sign: &str| cut(&format!("(uint64_t)({one}) {sign} (uint64_t)({other})"), width, signed);
                match operator {
                    Binary::Add => plain("+"),
                    Binary::Sub => plain("-"),
                    Binary::Mul => plain("*"),
                    Binary::BitAnd => plain("&"),
                    Binary::BitOr => plain("|"),
                    Binary::BitXor => plain("^"),
                    Binary::SaturatingAdd | Binary::SaturatingSub if signed => {
                        let sign = if operator == Binary::SaturatingAdd { "+" } else { "-" };
                        format!("p4_clamp((__int128)({one}) {sign} (__int128)({other}), {width})")
                    }
                    Binary::SaturatingAdd => format!("p4_sat_add({one}, {other}, {width})"),
                    Binary::SaturatingSub => format!("p4_sat_sub({one}, {other})"),
                    Binary::Div if signed => cut(&format!("p4_sdiv({one}, {other})"), width, signed),
                    Binary::Mod if signed => cut(&format!("p4_smod({one}, {other})"), width, signed),
                    Binary::Div => format!("p4_div({one}, {other})"),
                    _ => format!("p4_mod({one}, {other})"),
                }
            }
        }
    }

    fn ordered(&mut self, operator: Binary, left: &Expr, right: &Expr) -> String {
        let (one, other) = (self.expr(left), self.as_type(right, left.ty));
        let (first, second, negated) = match operator {
            Binary::Less => (one, other, false),
            Binary::Greater => (other, one, false),
            Binary::GreaterEqual => (one, other, true),
            _ => (other, one, true),
        };
        let less = match self.form(left.ty) {
            Form::Wide(k, _, true) => format!("w{k}_slt({first}, {second})"),
            Form::Wide(k, _, false) => format!("w{k}_lt({first}, {second})"),
            Form::Narrow(_, true) => format!("(int64_t)({first}) < (int64_t)({second})"),
            _ => format!("(uint64_t)({first}) < (uint64_t)({second})"),
        };
        if negated { format!("(!({less}))") } else { format!("({less})") }
    }

    fn concatenated(&mut self, left: &Expr, right: &Expr, ty: Ty) -> String {
        let (one, other) = (self.expr(left), self.expr(right));
        let (left_form, right_form) = (self.form(left.ty), self.form(right.ty));
        let low = width_of(right_form).0;
        if let Form::Wide(count, width, signed) = self.form(ty) {
            self.declarations.wide.insert(count);
            let whole = |text: &str, form: Form| match form {
                Form::Wide(from, _, signed) => format!("w{count}_load(({text}).w, {from}, {signed})"),
                other if width_of(other).1 => format!("w{count}_s({text})"),
                _ => format!("w{count}_u({text})"),
            };
            let high = whole(&one, left_form);
            let rest = whole(&other, right_form);
            let result = format!("w{count}_or(w{count}_shl({high}, {low}), w{count}_wrap({rest}, {low}))");
            return fit(&result, count, width, signed);
        }
        let (width, signed) = width_of(self.form(ty));
        cut(&format!("p4_shl((uint64_t)({one}), {low}) | ((uint64_t)({other}) & {})", mask(low)), width, signed)
    }
}
