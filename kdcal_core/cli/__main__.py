"""``python -m kdcal_core.cli``: the command line without its installed script."""

import sys

from kdcal_core.cli.main import main

sys.exit(main())
