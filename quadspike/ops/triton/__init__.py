"""The fused soma: kernels in Triton, and what launches them.

Imported at the first launch, and Triton with it.
"""
