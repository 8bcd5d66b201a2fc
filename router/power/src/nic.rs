//! Power of network cards: energy per forwarded IP packet. Takemasa (2019), 6.3.5, equation 6.10.
//!
//! The power of an idle card is part of the chassis.

/// Ψ_nic of the Intel X540-T2 (10 Gbit/s), in joules per packet; measured with packets of 1500 bytes (6.3.5).
pub const X540_JOULES_PER_PACKET: f64 = 1.26e-5;
/// Ψ_nic of the Intel XL710 (40 Gbit/s), in joules per packet; from its data sheets, not measured (6.5.1).
pub const XL710_JOULES_PER_PACKET: f64 = 2.3e-7;

/// Equation 6.10: φ_nic, in watts.
pub fn watts(joules_per_packet: f64, packets_per_second: f64) -> f64 {
    joules_per_packet * packets_per_second
}
