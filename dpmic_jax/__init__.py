"""Maximal information coefficients of many column pairs at once, in JAX, and private ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmic_jax.compilation_cache import enable_compilation_cache
    from dpmic_jax.dp.budget import Budget, BudgetExceeded, Ledger
    from dpmic_jax.dp.events import (
        ZCDP,
        ApproximateDP,
        Event,
        PureDP,
        ReplaceOne,
    )
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
    from dpmic_jax.mic.grids import (
        all_sizes,
        definition,
        ladder,
        power,
        reshef,
    )
    from dpmic_jax.mic.settings import MICe, MICr
    from dpmic_jax.mic.soft import soft_micr
    from dpmic_jax.mic.ties import grouped, random
    from dpmic_jax.pairs import (
        Pairwise,
        characteristic,
        characteristics,
        mice,
        micr,
        pairwise,
    )
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
    "enable_compilation_cache",
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


# Where the names are. A module is imported when one of its names is first used: JAX takes a second
# or two, and who asks for the command's help, or interrupts it, does not wait for that.
_MODULES = {
    "compilation_cache": ("enable_compilation_cache",),
    "dp.budget": ("Budget", "BudgetExceeded", "Ledger"),
    "dp.events": ("ApproximateDP", "Event", "PureDP", "ReplaceOne", "ZCDP"),
    "dp.information": ("capacity", "worst_capacity"),
    "dp.keys": ("is_secret", "secret_key", "seeded_key"),
    "dp.ledger": ("LedgerFile",),
    "dp.max_information": ("corrected_level", "largest_epsilon"),
    "dp.units": ("Units", "units"),
    "inference": (
        "ByCandidates",
        "ByPrivacy",
        "EachPair",
        "FalseDiscovery",
        "FamilyWise",
        "NullTable",
        "Permutation",
        "PostSelection",
        "null_law",
        "permutation_p_values",
        "post_selection",
    ),
    "mechanisms": (
        "EqualCells",
        "HistogramRelease",
        "MICeLap",
        "MICrGauss",
        "MICrHistogram",
        "MICrLap",
        "OctaveCells",
        "PrivateBounds",
        "PublishedMICeLap",
        "PublishedMICrGeom",
        "PublishedMICrLap",
        "QuantileBounds",
        "Release",
        "VariationLap",
        "debias",
        "fitted_prior",
        "mic_star_estimate",
        "private_bounds",
    ),
    "mic.characteristic": (
        "Characteristic",
        "PairCharacteristic",
        "gmic",
        "mas",
        "mcn",
        "mev",
        "tic",
        "tic_normalised",
    ),
    "mic.gains": ("exact_gains", "fast_gains"),
    "mic.grids": ("all_sizes", "definition", "ladder", "power", "reshef"),
    "mic.settings": ("MICe", "MICr"),
    "mic.soft": ("soft_micr",),
    "mic.ties": ("grouped", "random"),
    "pairs": ("Pairwise", "characteristic", "characteristics", "mice", "micr", "pairwise"),
    "results": ("ScreenResult",),
    "schema": ("Categories", "FixedValue", "Number", "OwnBin", "Schema", "read_schema"),
    "screening": (
        "Above",
        "Against",
        "AllPairs",
        "Between",
        "Preview",
        "Resources",
        "TopK",
        "create_ledger",
        "learn_bounds",
        "preview",
        "screen",
    ),
    "tuned": ("cheap_defaults", "defaults"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dpmic_jax' has no attribute {name!r}")
    found = getattr(import_module(f"dpmic_jax.{_MODULE_OF[name]}"), name)
    globals()[name] = found  # the next time there is nothing to look for
    return found


def __dir__() -> list[str]:
    return __all__
