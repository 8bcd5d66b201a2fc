//! Generates C code for the encryption of payloads: packets request it at the end of a stage, and it is done for the
//! whole batch together (`cipher.h`).

use super::{Emitter, End};
use crate::ir::{Cipher, Statement};
use crate::optimise::visit;

impl Emitter<'_> {
    /// True if the program encrypts or decrypts.
    pub(super) fn encrypts(&self) -> bool {
        let mut encrypts = false;
        for part in &self.program.parts {
            visit::statements(&part.body, &mut |statement| {
                encrypts |= matches!(statement, Statement::Cipher(_));
            });
        }
        encrypts
    }

    /// Requests encryption and ends the stage.
    pub(super) fn cipher(&mut self, cipher: &Cipher) {
        self.line("{");
        self.indent += 1;
        let (words, _) = self.words([&cipher.key, &cipher.iv].into_iter());
        let (key, iv) = words.split_at(words.len() / 2);
        let words = format!("{{{{{}}}, {{{}}}}}", key.join(", "), iv.join(", "));
        let offset = self.word(&cipher.offset);
        let ask = if self.fused.is_some() {
            format!("p4_cipher_frame(p, frame, {}, position, {offset}", cipher.encrypts)
        } else {
            format!("p4_cipher_packet(p, {}, {offset}", cipher.encrypts)
        };
        self.lose_unless(&format!("{ask}, (struct p4_cipher_words){words})"));
        self.indent -= 1;
        self.line("}");
        if self.is_staged() {
            self.ends.push(End::Cipher);
            let stage = if self.fused.is_some() { self.wait(&cipher.resume, None) } else { self.stage() };
            self.ciphers.insert(stage);
        } else {
            self.line("p4_cipher_all();");
            if self.fused.is_some() {
                self.line("length = frame->length;");
            }
        }
        self.read_again(&cipher.resume);
    }
}
