//! Structure of values that the control plane accesses: digests, and cells of registers.

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::{Ty, Type, Types};
use serde::{Deserialize, Serialize};

/// An integer, or a struct of integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A truth value.
    Bool,
    /// An integer; also enums and errors.
    Bits {
        /// Width in bits.
        width: u32,
        /// True for a signed integer.
        signed: bool,
    },
    /// A struct.
    Struct {
        /// The name of its type.
        name: String,
        /// Names and shapes of its fields.
        members: Vec<(String, Shape)>,
    },
    /// A tuple; its parts are numbered from 0.
    Tuple(Vec<Shape>),
}

/// A scalar part of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Name such as `struct.member`; empty for a scalar value.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// True for a signed integer.
    pub signed: bool,
    /// Offset and size in memory, in bytes.
    pub offset: usize,
    /// Size in memory, in bytes.
    pub size: usize,
}

impl Shape {
    /// `None` for types with headers, stacks or fields of variable length.
    pub fn of(types: &Types, ty: Ty) -> Option<Shape> {
        let ty = types.stripped(ty);
        let all = |list: &[Ty]| list.iter().map(|ty| Shape::of(types, *ty)).collect::<Option<Vec<_>>>();
        Some(match types.get(ty) {
            Type::Bool => Shape::Bool,
            Type::Bits { width, signed } => Shape::Bits { width: *width, signed: *signed },
            Type::Enum(_) | Type::Error => {
                let (width, signed) = types.representation(ty).unwrap_or((32, false));
                Shape::Bits { width, signed }
            }
            Type::Tuple(list) => Shape::Tuple(all(list)?),
            Type::Record(fields) => Shape::Tuple(all(&fields.iter().map(|(_, ty)| *ty).collect::<Vec<_>>())?),
            Type::Struct(number) if types.structs[*number].kind == StructKind::Struct => {
                let info = &types.structs[*number];
                let shapes = all(&info.fields.iter().map(|(_, ty)| *ty).collect::<Vec<_>>())?;
                let names = info.fields.iter().map(|(name, _)| name.to_string());
                Shape::Struct { name: info.name.to_string(), members: names.zip(shapes).collect() }
            }
            _ => return None,
        })
    }

    fn members(&self) -> Vec<(String, &Shape)> {
        match self {
            Shape::Bool | Shape::Bits { .. } => Vec::new(),
            Shape::Struct { members, .. } => members.iter().map(|(name, shape)| (name.clone(), shape)).collect(),
            Shape::Tuple(list) => list.iter().enumerate().map(|(place, shape)| (place.to_string(), shape)).collect(),
        }
    }

    /// Total number of bits of all parts.
    pub fn bits(&self) -> u64 {
        match self {
            Shape::Bool => 1,
            Shape::Bits { width, .. } => u64::from(*width),
            _ => self.members().iter().map(|(_, member)| member.bits()).fold(0, u64::saturating_add),
        }
    }

    /// Size of a scalar value in memory, and its alignment, in bytes (`emit::types`).
    fn size(&self) -> (usize, usize) {
        match self {
            Shape::Bool => (1, 1),
            Shape::Bits { width, .. } => match [8, 16, 32, 64].into_iter().find(|size| width <= size) {
                Some(size) => (size as usize / 8, size as usize / 8),
                None => ((width / 64 + 1) as usize * 8, 8),
            },
            _ => (0, self.members().iter().map(|(_, member)| member.size().1).max().unwrap_or(1)),
        }
    }

    /// All scalar parts in C's memory layout, and the total size in bytes.
    pub fn leaves(&self) -> (Vec<Leaf>, usize) {
        let (mut leaves, mut at) = (Vec::new(), 0);
        self.collect("", &mut at, &mut leaves);
        (leaves, at)
    }

    fn collect(&self, name: &str, at: &mut usize, leaves: &mut Vec<Leaf>) {
        let (size, align) = self.size();
        *at = at.next_multiple_of(align);
        if matches!(self, Shape::Bool | Shape::Bits { .. }) {
            let width = u32::try_from(self.bits()).unwrap_or(u32::MAX);
            let signed = matches!(self, Shape::Bits { signed: true, .. });
            leaves.push(Leaf { name: name.to_owned(), width, signed, offset: *at, size });
            *at += size;
            return;
        }
        for (member, shape) in self.members() {
            let path = if name.is_empty() { member } else { format!("{name}.{member}") };
            shape.collect(&path, at, leaves);
        }
        *at = at.next_multiple_of(align);
    }
}
