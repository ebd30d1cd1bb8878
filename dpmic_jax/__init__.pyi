"""The names at the top, and where they are: `__init__.py` imports each when it is first used."""

__version__: str

from .data.schema import (
    Categories as Categories,
)
from .data.schema import (
    FixedValue as FixedValue,
)
from .data.schema import (
    MissingBin as MissingBin,
)
from .data.schema import (
    Number as Number,
)
from .data.schema import (
    Schema as Schema,
)
from .data.schema import (
    Times as Times,
)
from .data.schema import (
    read_schema as read_schema,
)
from .data.source.query import (
    Query as Query,
)
from .dp.accounting.events import (
    ReplaceOne as ReplaceOne,
)
from .dp.conversions import (
    privacy_cost as privacy_cost,
)
from .dp.ledger.budget import (
    Budget as Budget,
)
from .dp.ledger.budget import (
    BudgetExceeded as BudgetExceeded,
)
from .dp.ledger.budget import (
    Ledger as Ledger,
)
from .dp.ledger.file import (
    LedgerFile as LedgerFile,
)
from .dp.rng.keys import (
    secret_key as secret_key,
)
from .dp.rng.keys import (
    seeded_key as seeded_key,
)
from .inference import (
    Permutation as Permutation,
)
from .inference import (
    independence_test as independence_test,
)
from .inference import (
    permutation_p_values as permutation_p_values,
)
from .inference import (
    post_selection as post_selection,
)
from .mechanisms import (
    MICeLap as MICeLap,
)
from .mechanisms import (
    MICrGauss as MICrGauss,
)
from .mechanisms import (
    MICrHistogram as MICrHistogram,
)
from .mechanisms import (
    MICrLap as MICrLap,
)
from .mechanisms import (
    Release as Release,
)
from .mechanisms import (
    VariationLap as VariationLap,
)
from .mechanisms import (
    debias as debias,
)
from .mic.compilation_cache import (
    enable_compilation_cache as enable_compilation_cache,
)
from .mic.pairwise import (
    characteristic as characteristic,
)
from .mic.pairwise import (
    characteristics as characteristics,
)
from .mic.pairwise import (
    mice as mice,
)
from .mic.pairwise import (
    micr as micr,
)
from .mic.pairwise import (
    pairwise as pairwise,
)
from .mic.soft import (
    soft_micr as soft_micr,
)
from .mic.statistics import (
    MICe as MICe,
)
from .mic.statistics import (
    MICr as MICr,
)
from .results import (
    ScreenResult as ScreenResult,
)
from .screening import (
    Above as Above,
)
from .screening import (
    Against as Against,
)
from .screening import (
    AllPairs as AllPairs,
)
from .screening import (
    Between as Between,
)
from .screening import (
    Resources as Resources,
)
from .screening import (
    TopK as TopK,
)
from .screening import (
    create_ledger as create_ledger,
)
from .screening import (
    learn_bounds as learn_bounds,
)
from .screening import (
    preview as preview,
)
from .screening import (
    screen as screen,
)
