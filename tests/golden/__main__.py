"""Compare today's figures with the stored ones, or store them: ``python -m tests.golden --write``.

Where a method changes on purpose, write the files again and read their difference with git: every
changed line must be one that the change explains.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it: `golden`, `workerless`

from workerless import working_here

from golden.groups import SAMPLES, computed, groups
from golden.processor import outputs_digest
from golden.record import differences, text
from golden.stored import PROCESSOR, path_of, read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(groups())}; all by default")
    parser.add_argument("--write", action="store_true", help="store the figures of today")
    options = parser.parse_args()
    unlike = 0
    processor = outputs_digest(SAMPLES)
    if options.write:
        PROCESSOR.write_text(f"{processor}\n", encoding="utf-8")
    elif PROCESSOR.read_text(encoding="utf-8").strip() != processor:
        print("This processor computes float32 outputs otherwise: small differences are its own.")
    with tempfile.TemporaryDirectory() as folder, working_here():
        for name in options.groups or groups():
            begun = time.process_time()
            found = computed(name, Path(folder))
            if options.write:
                path_of(name).parent.mkdir(exist_ok=True)
                path_of(name).write_text(text(found), encoding="utf-8")
            changes = [] if options.write else list(differences(read(name), found))
            print(f"{name}: {len(changes)} differ, {time.process_time() - begun:.1f} s", flush=True)
            print("".join(f"  {line}\n" for line in changes), end="")
            unlike += len(changes)
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
