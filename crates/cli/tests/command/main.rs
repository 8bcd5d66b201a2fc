//! The `namehop` binary as users meet it.

mod management;
mod support;
mod traffic;
