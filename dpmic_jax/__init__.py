"""Maximal information coefficients of many column pairs at once, in JAX, and private ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dpmic_jax.dp.budget import Budget, BudgetExceeded, Ledger
    from dpmic_jax.dp.events import ZCDP, ApproximateDP, Event, PureDP, ReplaceOne
    from dpmic_jax.dp.information import capacity, worst_capacity
    from dpmic_jax.dp.keys import is_secret, secret_key, seeded_key
    from dpmic_jax.dp.ledger import LedgerFile
    from dpmic_jax.dp.max_information import corrected_level, largest_epsilon
    from dpmic_jax.dp.units import Units, units
    from dpmic_jax.inference import (
        ByCandidates,
        ByPrivacy,
        EachPair,
        FalseDiscovery,
        FamilyWise,
        NullTable,
        Permutation,
        PostSelection,
        null_law,
        permutation_p_values,
        post_selection,
    )
    from dpmic_jax.mechanisms import (
        EqualCells,
        HistogramRelease,
        MICeLap,
        MICrGauss,
        MICrHistogram,
        MICrLap,
        OctaveCells,
        PrivateBounds,
        PublishedMICeLap,
        PublishedMICrGeom,
        PublishedMICrLap,
        QuantileBounds,
        Release,
        VariationLap,
        debias,
        fitted_prior,
        mic_star_estimate,
        private_bounds,
    )
    from dpmic_jax.mic.soft import soft_micr
    from dpmic_jax.results import ScreenResult
    from dpmic_jax.schema import (
        Categories,
        FixedValue,
        Number,
        OwnBin,
        Schema,
        read_schema,
    )
    from dpmic_jax.screening import (
        Above,
        Against,
        AllPairs,
        Between,
        Preview,
        Resources,
        TopK,
        create_ledger,
        learn_bounds,
        preview,
        screen,
    )
    from dpmic_jax.tuned import cheap_defaults, defaults

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "Above",
    "Against",
    "AllPairs",
    "ApproximateDP",
    "Between",
    "Budget",
    "BudgetExceeded",
    "ByCandidates",
    "ByPrivacy",
    "Categories",
    "Characteristic",
    "EachPair",
    "EqualCells",
    "Event",
    "FalseDiscovery",
    "FamilyWise",
    "FixedValue",
    "HistogramRelease",
    "Ledger",
    "LedgerFile",
    "MICe",
    "MICeLap",
    "MICr",
    "MICrGauss",
    "MICrHistogram",
    "MICrLap",
    "NullTable",
    "Number",
    "OctaveCells",
    "OwnBin",
    "PairCharacteristic",
    "Pairwise",
    "Permutation",
    "PostSelection",
    "Preview",
    "PrivateBounds",
    "PublishedMICeLap",
    "PublishedMICrGeom",
    "PublishedMICrLap",
    "PureDP",
    "QuantileBounds",
    "Release",
    "ReplaceOne",
    "Resources",
    "Schema",
    "ScreenResult",
    "TopK",
    "Units",
    "VariationLap",
    "all_sizes",
    "capacity",
    "characteristic",
    "characteristics",
    "cheap_defaults",
    "corrected_level",
    "create_ledger",
    "debias",
    "defaults",
    "definition",
    "exact_gains",
    "fast_gains",
    "fitted_prior",
    "gmic",
    "grouped",
    "is_secret",
    "ladder",
    "largest_epsilon",
    "learn_bounds",
    "mas",
    "mcn",
    "mev",
    "mic_star_estimate",
    "mice",
    "micr",
    "null_law",
    "pairwise",
    "permutation_p_values",
    "post_selection",
    "power",
    "preview",
    "private_bounds",
    "random",
    "read_schema",
    "reshef",
    "screen",
    "secret_key",
    "seeded_key",
    "soft_micr",
    "tic",
    "tic_normalised",
    "units",
    "worst_capacity",
]


# Where soft MICr and the private part are. They are imported when they are first used, for the
# private part takes a quarter of a second.
_LATER = (
    "mic.soft",
    "dp.budget",
    "dp.events",
    "dp.keys",
    "dp.ledger",
    "dp.units",
    "schema",
    "tuned",
    "mechanisms",
    "results",
    "screening",
    "inference",
    "dp.max_information",
    "dp.information",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in (import_module(f"dpmic_jax.{part}") for part in _LATER):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'dpmic_jax' has no attribute {name!r}")
