"""How fast are these workloads? Measurements that belong to no larger study."""
