"""``python -m pytato_provenance``."""

from __future__ import annotations

import sys

from pytato_provenance.cli import main


if __name__ == "__main__":
    sys.exit(main())
