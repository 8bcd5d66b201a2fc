//! The `namehop` binary as users meet it.

mod management;
mod measure;
mod signed;
mod support;
mod traffic;
