"""Sections of the YAML file whose keys are the options of layers; see `layer_sources`."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, Union

from pydantic import Field, TypeAdapter, create_model
from typing_extensions import Self

from regard.core.suggestions import suggest
from regard.models.layer_sources import LayerSource, read_choices
from regard.models.settings.base import Section


class LayerSection(Section):
    """Base class of the sections of one kind of layers; a subclass names their source.

    Attributes:
        type: The name of the layer.
        variants: The sections by name.
    """

    variants: ClassVar[dict[str, Any]] = {}  # before `type`, which hides the built-in
    type: str

    def __init_subclass__(cls, source: Path | None = None, **options: Any) -> None:
        """Prepare a kind of layers, or one of its sections.

        Args:
            source: The module, or the folder of the modules, that has the layers of a kind.
            options: As in the base class.
        """
        super().__init_subclass__(**options)

    @classmethod
    def __pydantic_init_subclass__(cls, source: Path | None = None, **options: Any) -> None:
        """Read the layers of a kind, after pydantic has prepared the class."""
        super().__pydantic_init_subclass__(**options)
        if source is not None:
            layers = read_choices(source)
            cls.variants = {name: _create_section(layer, cls) for name, layer in layers.items()}

    @classmethod
    def create(cls, name: str, /, **options: Any) -> Self:
        """Return the section of a layer.

        Args:
            name: The name of the layer.
            options: Its options, as in YAML files.

        Raises:
            ValueError: There is no such layer, or an option is invalid.
        """
        if name not in cls.variants:
            raise ValueError(f"Unknown layer {name!r}. {suggest(name, cls.variants)}.")
        section: Self = cls.variants[name].model_validate(options)
        return section

    def __reduce__(self) -> tuple[Any, ...]:
        # The class is created at run time, so that pickle cannot import it by its name.
        kind: Any = next(base for base in self.__class__.__mro__ if "variants" in vars(base))
        names = self.model_fields_set - {"type"}
        options = {name: getattr(self, name) for name in names}
        return functools.partial(kind.create, self.type, **options), ()


def any_of(sections: Iterable[type[Section]]) -> Any:
    """Return the type of a value that is one of the sections."""
    return Union[tuple(sections)]  # noqa: UP007  # they are not known in the source


def _create_section(layer: LayerSource, kind: type[LayerSection]) -> type[LayerSection]:
    """Return the section of a layer."""
    type_text = kind.model_fields["type"].description
    fields: dict[str, Any] = {
        "type": (Literal[layer.name], Field(layer.name, description=type_text))
    }
    for name, option in layer.options.items():
        try:
            option_type = option.type
        except NameError as error:
            place = f"{layer.file}: {layer.class_name}: the type of {name}, {option.annotation}"
            raise ValueError(f"{place}: {error}; use the types of regard.core.bounds") from None
        # A section as the default of an option is given by its name.
        default = TypeAdapter(option_type).validate_python(option.default)
        fields[name] = option_type, Field(default, description=option.description or None)
    section = create_model(
        f"{layer.class_name}Section",
        __base__=kind,
        __doc__=layer.summary,
        __module__=__name__,
        **fields,
    )
    for name in layer.attributes.keys() - layer.options.keys() - {"choice_name"}:
        setattr(section, name, layer.attributes[name])
    return section
