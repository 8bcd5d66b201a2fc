//! Power that a router on a server computer takes: chapter 6 of Takemasa's thesis (Osaka University 2019).
//!
//! Section 6.3 says what a server takes under a load on its processors, memory and network card; section 6.4 says which load a
//! rate of Interests is. One file for each thing:
//!
//! | module | what it holds | source |
//! |---|---|---|
//! | [`cpu`] | processors with frequencies and idle states | equations 6.2 to 6.8 |
//! | [`memory`], [`nic`] | energy of a byte and of a packet | equations 6.9 and 6.10 |
//! | [`server`] | all of it together, and the file that describes a server | equation 6.1 |
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
