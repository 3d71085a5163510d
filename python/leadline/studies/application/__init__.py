"""What is an application's I/O like? A trace of it, or a program as it runs, described."""
