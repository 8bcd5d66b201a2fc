//! Tests of the `namehop` binary.

mod management;
mod setup;
mod signed;
mod support;
mod traffic;
