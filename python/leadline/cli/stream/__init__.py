"""`leadline stream`: one kernel over records, and disks added one by one."""
