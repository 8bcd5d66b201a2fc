//! Tests of the `namehop` binary.

mod management;
mod measure;
mod setup;
mod signed;
mod support;
mod traffic;
