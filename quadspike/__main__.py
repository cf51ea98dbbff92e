"""`python -m quadspike`, also under `torchrun -m quadspike`."""

from quadspike.cli import program

if __name__ == "__main__":
    program()
