"""The base of every part of a contract as pydantic reads it: a frozen value that takes no key that it does not know.

Source: specification, section 3.
"""

from pydantic import BaseModel, ConfigDict


class Terms(BaseModel):
    """Base of every part of a contract: unknown keys are errors, nothing changes after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, arbitrary_types_allowed=True)
