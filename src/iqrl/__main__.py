"""`python -m iqrl` is the command `iqrl`."""

import sys

from iqrl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
