"""Every method's equations and gradients in float64 NumPy, one small file a method or family.

Written from the published equations alone: imports nothing from the package, nor torch, so
that the package can be checked against a second derivation. `test_equations.py` checks these
statements by finite differences.
"""
