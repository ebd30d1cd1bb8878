"""Programs compiled as they are for users, where the tests have others compiled quickly."""

import environment
import jax


def jit(function):
    return jax.jit(function, compiler_options=environment.LIKE_USERS)
