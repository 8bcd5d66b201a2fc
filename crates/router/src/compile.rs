//! What compiles loaded strategies for the processor: DPDK, where this build has it.

use namehop_forward::strategy::program::{Code, Verified};

/// Compiles a program that the verifier has passed.
///
/// # Errors
/// Why not, in words.
#[cfg(feature = "dpdk")]
pub fn compile_strategy(program: &Verified) -> Result<Code, String> {
    namehop_dpdk::bpf::compile(program).map_err(|error| error.to_string())
}

/// Refuses every program.
///
/// # Errors
/// Always.
#[cfg(not(feature = "dpdk"))]
pub fn compile_strategy(_: &Verified) -> Result<Code, String> {
    Err("this Namehop was built without DPDK, which compiles programs".to_owned())
}
