"""``python -m kdcal_core``: the command line without its installed script."""

import sys

from kdcal_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
