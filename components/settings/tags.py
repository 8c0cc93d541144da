"""The section ``data.tags``: tags that begin the sources of one model."""

from typing import Annotated

from pydantic import Field

from regard.models.settings.base import Listed, Section

TagName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# The feature that holds the tag of a row if tags belong to files.
TAG_FEATURE = "tag"


class TagsConfig(Section):
    """Tags of rows, such as the target language, the domain or the formality.

    The source of a row with the tag de becomes "<de> A dog runs.", so that one model has several
    languages (Johnson et al. 2017). Tags come from a column, or belong to files.

    Attributes:
        column: Column of data.extra with the tag of each row; null: tags belong to files.
        names: All tags; rows with another value in the column are invalid. [] with tags of files:
            those of train.
        train: Tag of each path of data.train (of one side), in the same order. Rows carry it as the
            text feature tag, for evaluation.slices.
        eval: Tag of each path of data.eval.
        test: Tag of each path of data.test.
        temperature: Rows of a tag are drawn in an epoch in proportion to n^(1/temperature), n being
            their number (Arivazhagan et al. 2019). 1: every row once; 5: rare tags more often; an
            epoch has the same number of rows. Only for the training.
    """

    column: Annotated[str | None, Field(examples=["language"])] = None
    names: Annotated[Listed[TagName], Field(examples=[["de", "fr"]])] = ()
    train: Annotated[Listed[TagName], Field(examples=[["de", "fr"]])] = ()
    eval: Listed[TagName] = ()
    test: Listed[TagName] = ()
    temperature: Annotated[float, Field(ge=1.0, le=100.0)] = 1.0

    @property
    def known(self) -> tuple[str, ...]:
        """All tags of the model, each once."""
        return tuple(dict.fromkeys(self.names or self.train))

    @property
    def feature(self) -> str:
        """The feature that holds the tag of a row."""
        return self.column or TAG_FEATURE
