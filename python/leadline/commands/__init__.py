"""Commands that belong to no kind of study: what is stored, and what there is to measure."""
