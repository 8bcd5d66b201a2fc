//! TLV elements: numbers, reading and writing (NDN packet specification, tlv.rst).
//!
//! An element is TYPE (VAR-NUMBER) LENGTH (VAR-NUMBER) VALUE. Numbers are big endian and must be in their shortest
//! form.

mod ordered;
mod reader;
pub mod types;
mod writer;

#[cfg(test)]
mod tests;

pub use ordered::OrderedReader;
pub(crate) use reader::value_that_fills;
pub use reader::{Element, Reader, decode_nni, frame_header, frame_length, read_single_element, read_var_number};
pub use writer::{Nni, Writer, element_len, nni_len, put_header, put_var_number, var_number_len};

/// Returns true if the type is critical: a packet with an unknown or out-of-order element of this type must be
/// rejected (NDN packet specification, tlv.rst "Considerations for Evolvability of TLV-Based Encoding").
#[inline]
pub const fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}
