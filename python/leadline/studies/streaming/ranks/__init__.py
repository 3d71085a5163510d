"""Several processes under mpirun: how they were started, and whether all still run."""
