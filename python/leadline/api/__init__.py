"""Leadline from Python: survey a system, open a stored one, predict.

    import leadline
    disk = leadline.survey("/data", budget="5min")
    disk.predict(leadline.Workload(unique_bytes=2**31, size_mean=32768)).throughput_mb_s

What comes back shows itself in a notebook and turns into a pandas frame.
"""
