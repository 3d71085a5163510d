"""`leadline peak` and `leadline surface`: searches on a server under test."""
