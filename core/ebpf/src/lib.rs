//! eBPF programs that run inside the router: object files, verifier, native code and interpreter.
//!
//! A program is loaded from an object file that a C compiler has made for the target `bpf` ([`object_file`]). It
//! consists of instructions ([`instruction`]; RFC 9669) and may call a fixed set of helper functions ([`Helper`]).
//! [`verify()`] proves that it ends, that it accesses only its own memory, and that it calls helpers with the
//! arguments that they expect. A [`Verified`] program becomes [`Code`]: native code on x86-64 under Linux, which is
//! checked again after translation, and interpreted elsewhere. [`blame`] records which program ended a process.
//!
//! ```
//! use namehop_ebpf::instruction::Instruction;
//! use namehop_ebpf::{Code, Interface, verify};
//!
//! // A context of 8 bytes, none of which programs may change, and no helpers.
//! static INTERFACE: Interface = Interface { context_bytes: 8, writable: 8..8, helpers: &[] };
//!
//! // r0 = *(u64 *)(r1 + 0); r0 += 1; exit
//! let program = [[0x79, 0x10, 0, 0, 0, 0, 0, 0], [0x07, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
//! let code = Code::new(verify(&program.map(Instruction::from_bytes), &INTERFACE)?, "increment");
//! let mut context = 41_u64.to_ne_bytes();
//! // SAFETY: the context has 8 bytes.
//! assert_eq!(unsafe { code.run(context.as_mut_ptr()) }, 42);
//! # Ok::<(), namehop_ebpf::Refusal>(())
//! ```
#![deny(unsafe_code)]

pub mod blame;
mod code;
pub mod instruction;
#[expect(unsafe_code, reason = "verified programs access memory by address")]
mod interpret;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[expect(unsafe_code, reason = "native code is mapped and called")]
mod native;
pub mod object_file;
mod program;
mod refusal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verify;

pub use code::Code;
pub use program::{Argument, Helper, HelperFunction, Interface, Memory, Returned};
pub use refusal::Refusal;
pub use verify::{Verified, verify};
