//! The `namehop` binary as users meet it.

mod management;
mod signed;
mod support;
mod traffic;
