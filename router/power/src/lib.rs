//! Power of a router on a server: chapter 6 of Takemasa's thesis (Osaka University 2019).
//!
//! Section 6.3 models the power of a server under a load on its CPUs, memory and network card. Arithmetic only:
//! functions are total, and input without meaning gives 0, infinity or NaN.
//!
//! | module | what it holds | source |
//! |---|---|---|
//! | [`cpu`] | CPUs with frequencies and idle states | equations 6.2 to 6.8 |
//! | [`memory`], [`nic`] | energy of a byte and of a packet | equations 6.9 and 6.10 |
//! | [`server`] | a whole server, and the file that describes it | equation 6.1 |
//! | [`description`] | a server by the name of a published one, or from a file | |
//! | [`servers`] | the three servers of the thesis, and the one of its case study | tables 6.1 to 6.3, 6.3.2, 6.5.1 |
//! | [`measurements`], [`fit`] | parameters of another server from rows of measurements | 6.3.3 to 6.3.5 |
//! | [`least_squares`] | regressions and R² | 6.3.3 |
//!
//! ```
//! use namehop_power::server::Load;
//! use namehop_power::servers;
//!
//! let server = servers::published("e5620").expect("a server of the thesis");
//! let idle = Load { cycles_per_second: 0.0, memory_bytes_per_second: 0.0, packets_per_second: 0.0 };
//! let busy = Load { cycles_per_second: 2e9, ..idle };
//! let watts = |load| server.power(load).expect("the load is within the capacity").cpu_watts;
//! assert!(watts(&busy) > watts(&idle));
//! ```
#![forbid(unsafe_code)]

pub mod cpu;
pub mod description;
pub mod fit;
pub mod least_squares;
pub mod measurements;
pub mod memory;
pub mod nic;
pub mod server;
pub mod servers;
