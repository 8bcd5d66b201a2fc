//! Encryption of payloads with AES-128-CBC (NIST SP 800-38A), block by block.

use aes::Aes128;
use cbc::cipher::{Array, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use num_bigint::BigInt;

use super::{Run, Stop, Switch};

const BLOCK_BYTES: usize = 16;
/// Maximum growth of a packet in bytes, over all calls (`P4_SLACK`).
const MOST_GROWTH_BYTES: usize = 16;
/// Parts of the pipeline where encryption is not allowed: the start of the payload is not known yet, or some of it was
/// already written.
const PARSER: usize = 0;
const DEPARSER: usize = 5;

/// A 128-bit number as bytes, the highest first.
fn block(number: &BigInt) -> [u8; BLOCK_BYTES] {
    let (_, bytes) = number.to_bytes_be();
    let mut block = [0; BLOCK_BYTES];
    let length = bytes.len().min(BLOCK_BYTES);
    block[BLOCK_BYTES - length..].copy_from_slice(&bytes[bytes.len() - length..]);
    block
}

impl Switch<'_> {
    /// `aes_cbc_encrypt` and `aes_cbc_decrypt`.
    pub(super) fn cipher(&mut self, name: &str, offset: u64, key: &BigInt, iv: &BigInt) -> Run<()> {
        if matches!(self.part, PARSER | DEPARSER) {
            return Err(Stop::Failure(format!("{name} must not be called in a parser or deparser")));
        }
        if !self.position.is_multiple_of(8) {
            return Err(Stop::Failure(format!("{name}: the payload does not begin at a byte boundary")));
        }
        let mut bytes = self.input.bytes().to_vec();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(self.position / 8);
        if start >= bytes.len() {
            return Ok(());
        }
        let whole = (bytes.len() - start).next_multiple_of(BLOCK_BYTES);
        self.grown += start + whole - bytes.len();
        if self.grown > MOST_GROWTH_BYTES {
            return Err(Stop::Failure(format!("{name}: a packet grows by more than {MOST_GROWTH_BYTES} bytes")));
        }
        self.spend(whole as u64 / 64)?;
        bytes.resize(start + whole, 0);
        let (key, iv) = (block(key), block(iv));
        let blocks = bytes[start..].chunks_exact_mut(BLOCK_BYTES).filter_map(|block| block.try_into().ok());
        if name == "aes_cbc_encrypt" {
            let mut cipher = cbc::Encryptor::<Aes128>::new(&Array(key), &Array(iv));
            blocks.for_each(|block: &mut [u8; BLOCK_BYTES]| cipher.encrypt_block(block.into()));
        } else {
            let mut cipher = cbc::Decryptor::<Aes128>::new(&Array(key), &Array(iv));
            blocks.for_each(|block: &mut [u8; BLOCK_BYTES]| cipher.decrypt_block(block.into()));
        }
        self.input = super::Bits::from_bytes(&bytes);
        Ok(())
    }
}
