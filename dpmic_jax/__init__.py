"""Maximal information coefficients of many column pairs at once, in JAX."""

from dpmic_jax.mic.binning import grouped, random
from dpmic_jax.mic.characteristic import (
    Characteristic,
    PairCharacteristic,
    gmic,
    mas,
    mcn,
    mev,
    tic,
    tic_normalised,
)
from dpmic_jax.mic.gains import exact_gains, fast_gains
from dpmic_jax.mic.grids import all_sizes, definition, ladder, power, reshef
from dpmic_jax.mic.settings import MICe, MICr
from dpmic_jax.pairwise import (
    Pairwise,
    characteristic,
    characteristics,
    mice,
    micr,
    pairwise,
)

__version__ = "0.1.0"

__all__ = [
    "Characteristic",
    "MICe",
    "MICr",
    "PairCharacteristic",
    "Pairwise",
    "all_sizes",
    "characteristic",
    "characteristics",
    "definition",
    "exact_gains",
    "fast_gains",
    "gmic",
    "grouped",
    "ladder",
    "mas",
    "mcn",
    "mev",
    "mice",
    "micr",
    "pairwise",
    "power",
    "random",
    "reshef",
    "tic",
    "tic_normalised",
]
