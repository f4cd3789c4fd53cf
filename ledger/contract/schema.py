"""The JSON Schema of a contract file, made from the model: for editors, which then complete keys and mark what cannot be right.

It says what a key is called, which are required, how a value is written and among what it is chosen. What needs more than one place, as
tiers that cover every latency, only the reader proves. Only words that drafts 7 and 2020-12 both have are used, since editors lag behind.
Source: specification, section 3.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ledger.contract.model import Contract
from ledger.contract.scalar import DECIMAL

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def contract_schema() -> dict[str, Any]:
    """The schema; every key has a description.

    >>> contract_schema()["properties"]["schema"]["const"]
    'ledger/contract/v1'
    """
    schema = Contract.model_json_schema(by_alias=True, schema_generator=_Generator)
    parts = schema["$defs"]
    _stand_beside_their_clause(parts["Queues"])
    _take_three_units(parts["ExampleEvent"])
    for part in (schema, *parts.values()):
        part.pop("title", None)
    return {"$schema": DRAFT, "title": "ledger contract, one version", **schema}


class _Generator(GenerateJsonSchema):
    """What a file writes, which differs from what Python holds: nothing is null, names of things are patterns of keys."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """A key that may be left out, and is not null when it is there."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Defaults are given where Python holds the word of the file."""
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        return {**inner, "default": default} if isinstance(default, str) else inner

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Keys that the contract chooses."""
        names = self.generate_inner(schema["keys_schema"])
        values = self.generate_inner(schema["values_schema"])
        return {"type": "object", "propertyNames": names, "additionalProperties": values}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """The kinds of an exemption, without a keyword that JSON Schema does not have."""
        union = super().tagged_union_schema(schema)
        union.pop("discriminator", None)
        return union

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Keys are titles enough."""
        return False


def _stand_beside_their_clause(queues: dict[str, Any]) -> None:
    """In a file the queues stand beside `clause`, and not under a key of their own."""
    declared = queues["properties"].pop("by_name")
    queues["required"].remove("by_name")
    queues |= {"propertyNames": declared["propertyNames"], "additionalProperties": declared["additionalProperties"]}


def _take_three_units(event: dict[str, Any]) -> None:
    """A duration of an example's event is given as `_us`, `_ms` or `_s`."""
    for name in [name for name in event["properties"] if name.endswith("_us")]:
        for unit, word in (("ms", "milliseconds"), ("s", "seconds")):
            event["properties"][f"{name.removesuffix('_us')}_{unit}"] = {
                "type": ["string", "number"],
                "pattern": f"^(?:{DECIMAL.pattern})$",
                "minimum": 0,
                "description": f"A number of {word}.",
            }
