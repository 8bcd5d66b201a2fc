//! Encryption of payloads, of `namehop.p4`.

use super::{Lower, Lowerer, PARTS};
use crate::ir::{Cipher, Expr, Resume, Statement};

/// Widths of the arguments, in bits.
const OFFSET_BITS: u32 = 32;
const BLOCK_BITS: u32 = 128;

impl Lowerer<'_> {
    /// `aes_cbc_encrypt` and `aes_cbc_decrypt`.
    pub(super) fn cipher(&mut self, name: &str, offset: Expr, key: Expr, iv: Expr) -> Lower<()> {
        if matches!(PARTS[self.part], "parser" | "deparser") {
            return self
                .refuse(format!("{name} can be called only in controls before the deparser, also through functions"));
        }
        // A program may declare its own function with such a name.
        for (value, width) in [(&offset, OFFSET_BITS), (&key, BLOCK_BITS), (&iv, BLOCK_BITS)] {
            if self.types().representation(value.ty) != Some((width, false)) {
                return self.refuse(format!("the function {name} differs from that of namehop.p4"));
            }
        }
        let offset = self.cast(offset, self.common.word)?;
        let encrypts = name == "aes_cbc_encrypt";
        self.push(Statement::Cipher(Cipher { encrypts, offset, key, iv, resume: Resume::default() }))
    }
}
