"""The workbench (SH08): a server's peak rate, and response surfaces, for the least cost."""
