import jax.numpy as jnp
import numpy as np

from iqrl.parts.replay import Transition, pack, row_width, unpack


def test_pack_and_unpack_are_inverse():
    step = Transition(
        obs_tm1=jnp.array([1.0, 2.0]), a_tm1=jnp.int32(3), r_t=jnp.float32(-0.5), discount_t=jnp.float32(0.99),
        obs_t=jnp.array([4.0, 5.0]), context_tm1=jnp.int32(2), context_t=jnp.int32(1), over=jnp.bool_(True),
        greedy=jnp.bool_(False),
    )  # fmt: skip
    row = pack(step)
    assert row.shape == (row_width(2),)
    for given_, back in zip(step, unpack(row, 2), strict=True):
        np.testing.assert_array_equal(given_, back)
        assert given_.dtype == back.dtype
