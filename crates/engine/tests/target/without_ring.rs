//! What queues requests where `io_uring` is forbidden.

use serde_json::json;

use crate::scratch::Scratch;
use crate::target::conformance::{agrees, deep, on, result, synced};

/// Forbids io_uring_setup to this thread, and to those that it starts, as container runtimes do.
fn forbid_io_uring() {
    let statement =
        |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let forbidden = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_io_uring_setup as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, forbidden),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: a valid program for this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

#[test]
fn where_io_uring_is_forbidden_something_else_queues_and_is_named() {
    let scratch = Scratch::new("forbidden");
    for (direct, name) in [(true, "Linux AIO"), (false, "a pool of threads")] {
        for sync in
            [json!({"kind": "none"}), json!({"kind": "dsync"}), json!({"kind": "fsync", "each": 4})]
        {
            let job = synced(deep(on(&scratch, "uring", direct), 8), sync);
            let forbidden = move || {
                forbid_io_uring();
                result(&job)
            };
            let result = std::thread::spawn(forbidden).join().unwrap();
            agrees(name, &result);
            let said = result["findings"].to_string();
            assert!(said.contains("no_io_uring") && said.contains(name), "{said}");
        }
    }
    let granted = result(&deep(on(&scratch, "uring", false), 8));
    assert!(!granted["findings"].to_string().contains("no_io_uring"), "{granted}");
}
