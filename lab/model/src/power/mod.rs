//! Power of a router on a server: chapter 6 of Takemasa's thesis (Osaka University 2019).
//!
//! Section 6.3 models the power of a server under a load on its CPUs, memory and network card. Section 6.4 gives the
//! load that a rate of Interests causes.
//!
//! | module | what it holds | source |
//! |---|---|---|
//! | [`cpu`] | CPUs with frequencies and idle states | equations 6.2 to 6.8 |
//! | [`memory`], [`nic`] | energy of a byte and of a packet | equations 6.9 and 6.10 |
//! | [`server`] | a whole server, and the file that describes it | equation 6.1 |
//! | [`servers`] | the three servers of the thesis, and the one of its case study | tables 6.1 to 6.3, 6.3.2, 6.5.1 |
//! | [`router`] | what an Interest costs a router | equations 6.11 to 6.15 |
//! | [`measurements`], [`fit`] | parameters of another server from rows of measurements | 6.3.3 to 6.3.5 |
//! | [`least_squares`] | regressions and R² | 6.3.3 |

pub mod cpu;
pub mod fit;
pub mod least_squares;
pub mod measurements;
pub mod memory;
pub mod nic;
pub mod router;
pub mod server;
pub mod servers;
