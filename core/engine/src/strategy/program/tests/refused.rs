//! Tests of object files that are refused, with the reason.

use super::{load, object_of};

#[test]
fn hostile_programs_are_refused_with_the_reason() {
    for (function, reason) in [
        ("NAMEHOP_PROGRAM(context) { while (namehop_random(context)) {} return 0; }", "loop back"),
        ("NAMEHOP_PROGRAM(context) { return ((char *)context)[200]; }", "of the context, which has"),
        ("NAMEHOP_PROGRAM(context) { return context->parameters[context->event]; }", "may leave"),
        ("NAMEHOP_PROGRAM(context) { context->ingress = 1; return 0; }", "cannot be changed"),
        ("NAMEHOP_PROGRAM(context) { return *(namehop_u64 *)context->now_ns; }", "a number is not an address"),
        ("NAMEHOP_PROGRAM(context) { namehop_prefix_scratch(context)[8] = 1; return 0; }", "of the memory of a helper"),
        (
            "NAMEHOP_PROGRAM(context) { *(namehop_u64 *)namehop_out_record(context, 0) = 1; return 0; }",
            "cannot be changed",
        ),
        ("NAMEHOP_PROGRAM(context) { return namehop_random((void *)((char *)context + 8)); }", "must be the context"),
        ("static namehop_u64 count; NAMEHOP_PROGRAM(context) { return count += context->event; }", "global variable"),
        (
            "int system(const char *); NAMEHOP_PROGRAM(context) { return system((char *)context); }",
            "there is no helper system",
        ),
        (
            "__attribute__((noinline)) static int own(int x) { __asm__ volatile(\"\"); return x; }
             NAMEHOP_PROGRAM(context) { return own(context->event); }",
            "always_inline",
        ),
        ("", "its function must be in section"),
    ] {
        let error = load(&object_of(function)).expect_err(function).to_string();
        assert!(error.contains(reason), "{function}: {error}");
    }
}

#[test]
fn other_files_are_refused() {
    let reasons = [
        (
            b"not an ELF file at all, but long enough to be one of these files for processors".to_vec(),
            "not an object file",
        ),
        (Vec::new(), "not an object file"),
        (vec![0; 70_000], "65536 are allowed"),
        (std::fs::read("/proc/self/exe").expect("this test"), "are allowed"),
    ];
    for (bytes, reason) in reasons {
        let error = load(&bytes).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
}
