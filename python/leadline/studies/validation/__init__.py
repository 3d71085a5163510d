"""How good are the predictions? The paper's own experiment (CP94 §9), stored and resumable."""
