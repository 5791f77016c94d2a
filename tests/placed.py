"""Panels made of functions, reports that show them, and what pages carry packed."""

import base64
import re
import zlib

import attrs

from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.panel import Panels, Placed


def panel_of(function, place="overview", *, name="p", title="P", plugin="mine"):
    @blocks.panel(title, place=place)
    def shown(about):
        return function(about)

    return Placed(name, plugin, shown)


def with_panels(report, *placed):
    panels = Panels(placed)
    shared = {"panels": panels}
    return attrs.evolve(report, shared=shared)


def unpacked(text):
    decompressed = zlib.decompress(base64.b64decode(text), wbits=-15)
    return decompressed.decode()


def carried(page, name="chunk[0-9]+"):
    """Return the texts that the page carries under a name, unpacked.

    They are rows, panels, or the list of samples.
    """
    matches = re.findall(
        rf'<script type="application/json" id="{name}"[^>]*>([^<]*)</script>', page
    )
    return "\n".join(map(unpacked, matches))
