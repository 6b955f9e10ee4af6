"""``python -m gpusim``: the command line."""

from gpusim.cli.main import main

if __name__ == "__main__":
    main()
