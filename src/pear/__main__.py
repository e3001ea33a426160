"""``python -m pear`` is ``pear``."""

from pear.cli.main import main

if __name__ == "__main__":
    main()
