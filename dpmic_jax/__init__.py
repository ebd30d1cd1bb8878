"""Maximal information coefficients of many column pairs at once, in JAX, and private ones.

What most programs need is here; the reference shows in which module everything else is. Names are
imported when they are first used, from where `__init__.pyi` says: JAX takes a second or two, which
`dpmic --help` does not have to wait for.
"""

import lazy_loader

from dpmic_jax.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
