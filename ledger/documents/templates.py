"""The templates of `reports/`, the only place that jinja2 is used: plain values in, one HTML page out.

Every value is escaped; templates see nothing but what they are given and read nothing but their own folder.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from ledger.bundle import bundled_folder


def render_page(template: str, values: Mapping[str, Any]) -> str:
    """The page that the template of that name makes of the values."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> SandboxedEnvironment:
    """Compiled once."""
    return SandboxedEnvironment(
        loader=FileSystemLoader(bundled_folder("reports")), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
