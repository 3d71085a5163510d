//! A file system without room. A limit on file sizes stands for it, which holds for a whole process.

use crate::own_process::alone;
use crate::scratch::Scratch;
use leadline_base::error::ErrorKind;
use leadline_engine::backend::data_file::DataFile;

#[test]
fn a_full_file_system_gives_one_clear_message_and_gets_its_space_back() {
    let test =
        "target::full_disk::a_full_file_system_gives_one_clear_message_and_gets_its_space_back";
    alone(test, || {
        let scratch = Scratch::new("full");
        let data = DataFile::open(scratch.text()).unwrap();
        data.extend(1 << 20, u64::MAX, &mut |_| {}).unwrap();
        let limit = libc::rlimit { rlim_cur: 4 << 20, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: valid rlimit; the signal would otherwise end the process.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
        }
        let error = data.extend(32 << 20, u64::MAX, &mut |_| {}).unwrap_err();
        let free = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: as above.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &free) };
        assert_eq!(error.kind, ErrorKind::Target);
        assert!(error.message.contains("free some space"), "{error}");
        assert_eq!(data.length_bytes().unwrap(), 1 << 20);
    });
}
