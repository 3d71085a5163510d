"""Documents of jobs that are no measurement: plain files, loads of NFS."""
