"""`python -m quadspike` is the command `quadspike`."""

from quadspike.cli import main

if __name__ == "__main__":
    main()
