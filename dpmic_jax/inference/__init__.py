"""Tests of independence: of the pairs that a screen selected, not private; and private ones.

`independence_test` is private: it has a budget, and its result may be published. Everything else
here is computed without noise, and is for the analyst only.

Names are imported when they are first used, from where `__init__.pyi` says, as those of
`dpmic_jax` are: most need few of the modules.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
