"""The fused soma: kernels in Triton, and what launches them.

Only `launch` and what it imports needs Triton; it is imported at the first launch.
"""
