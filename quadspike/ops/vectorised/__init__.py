"""The soma on the CPU: recorded equations run over blocks that stay in the cache."""
