"""What may be measured: addresses, claims on a directory, and what is looked at beforehand."""
