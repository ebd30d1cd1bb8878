"""Maximal information coefficients of many column pairs at once, in JAX, and private ones."""

from dpmic_jax.dp.budget import Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.events import Event, ReplaceOne
from dpmic_jax.dp.keys import is_secret, secret_key, seeded_key
from dpmic_jax.dp.ledger import LedgerFile
from dpmic_jax.mechanisms.additive import MICeLap, MICrGauss, MICrLap
from dpmic_jax.mechanisms.bounds import (
    EqualCells,
    OctaveCells,
    PrivateBounds,
    QuantileBounds,
    private_bounds,
)
from dpmic_jax.mechanisms.debias import debias
from dpmic_jax.mechanisms.histogram import MICrHistogram
from dpmic_jax.mechanisms.published import (
    PublishedMICeLap,
    PublishedMICrGeom,
    PublishedMICrLap,
)
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
    "Budget",
    "BudgetExceeded",
    "Characteristic",
    "EqualCells",
    "Event",
    "Ledger",
    "LedgerFile",
    "MICe",
    "MICeLap",
    "MICr",
    "MICrGauss",
    "MICrHistogram",
    "MICrLap",
    "OctaveCells",
    "PairCharacteristic",
    "Pairwise",
    "PrivateBounds",
    "PublishedMICeLap",
    "PublishedMICrGeom",
    "PublishedMICrLap",
    "QuantileBounds",
    "ReplaceOne",
    "all_sizes",
    "characteristic",
    "characteristics",
    "debias",
    "definition",
    "exact_gains",
    "fast_gains",
    "gmic",
    "grouped",
    "is_secret",
    "ladder",
    "mas",
    "mcn",
    "mev",
    "mice",
    "micr",
    "pairwise",
    "power",
    "private_bounds",
    "random",
    "reshef",
    "secret_key",
    "seeded_key",
    "tic",
    "tic_normalised",
]
