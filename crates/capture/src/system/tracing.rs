//! ptrace(2).
