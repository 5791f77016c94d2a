"""Print the licence of every distribution installed.

Exit code 1 where one does not go with Apache-2.0.
"""

import re
import sys
from importlib.metadata import PackageMetadata, distributions

GOES_WITH = re.compile(
    r"MIT|BSD|Apache|PSF|Python|ISC|Mozilla|MPL|Unlicense|CC0|zlib", re.IGNORECASE
)


def licence_of(about: PackageMetadata) -> str:
    """Return what a distribution says of its licence, in one line."""
    classified = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier", [])
        if each.startswith("License")
    ]
    said = [about.get("License-Expression"), *classified, about.get("License")]
    return next((line for line in said if line), "not stated").splitlines()[0]


def main() -> int:
    """Print them all."""
    found = {each.metadata["Name"].lower(): each.metadata for each in distributions()}
    unclear = [name for name, about in found.items() if not GOES_WITH.search(licence_of(about))]
    for name, about in sorted(found.items()):
        print(
            f"{name:24} {about['Version']:16} "
            f"{licence_of(about)}{'   <-- look at it' if name in unclear else ''}"
        )
    return bool(unclear)


if __name__ == "__main__":
    sys.exit(main())
