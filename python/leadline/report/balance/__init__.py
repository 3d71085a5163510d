"""The balance of a system against its kernels (AD98)."""
