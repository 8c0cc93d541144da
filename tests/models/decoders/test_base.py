import keras
import numpy as np
import pytest

from regard.models.decoders import LuongDecoder
from regard.models.decoders.base import Decoder
from regard.models.encoders import RecurrentEncoder
from regard.models.layers.embeddings import TokenEmbedding
from tests.tolerances import assert_close

TOKENS = np.array([[2, 5, 6, 7]], "int32")


def make(**settings):
    return LuongDecoder(9, 5, 6, embedding=4, units=4, attention={"score": "general"}, **settings)


def test_shared_embeddings_keep_their_own_scale_and_dropout():
    ours, theirs = TokenEmbedding(9, 4, scale=True), TokenEmbedding(9, 4, dropout=0.5)
    ours.build()
    theirs.share(ours)
    theirs.build()
    assert_close(ours(TOKENS), 2.0 * np.asarray(theirs(TOKENS)))
    assert (np.asarray(theirs(TOKENS, training=True)) == 0).any()
    assert not (np.asarray(ours(TOKENS, training=True)) == 0).any()


def test_incompatible_embeddings_cannot_be_shared():
    decoder = make()
    small = RecurrentEncoder(8, embedding=4, units=5).embedding
    with pytest.raises(ValueError, match=r"8 tokens with depth 4.*9 tokens with depth 4"):
        decoder.embedding.share(small)
    decoder.build()
    with pytest.raises(ValueError, match="before it is built"):
        decoder.embedding.share(make().embedding)


def test_a_deserialized_decoder_can_share_its_embedding():
    decoder = make()
    decoder.build()
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(decoder))
    shared = make().embedding
    shared.build()
    again.embedding.share(shared)
    again.build()
    assert again.embedding.table is shared.table


@pytest.mark.parametrize("method", ["start", "step", "unroll"])
def test_an_abstract_method_raises(method):
    with pytest.raises(TypeError, match="Decoder does not implement"):
        getattr(Decoder(), method)(*[None] * (1 if method == "start" else 2))
