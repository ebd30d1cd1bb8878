"""What is true of every screen, in the words that registries and evaluations ask for.

The fields follow a list that was put together from summaries of two sources: the schema behind the
public registry of deployments (arXiv 2509.13509) and NIST SP 800-226 (2025). They may change with
their sources, so the export has a version of its own.
"""

SOURCES = (
    "fields as of a list made from summaries of arXiv 2509.13509 and of NIST SP 800-226 (March "
    "2025); not an official form of either"
)

# What only the curator knows, by section; `answers` has the same names.
ASKED = {
    "deployment": (
        "title",
        "organisation",
        "sector",
        "region",
        "dates",
        "purpose",
        "intended_use",
        "audience",
        "contact",
        "sources",
    ),
    "data": ("table", "collection", "population"),
    "guarantee": ("period", "repeated"),
    "accounting": ("releases_outside_the_ledger",),
    "implementation": ("commit", "access_control", "deletion_of_the_key"),
    "parameters": ("why_epsilon", "why_delta"),
}

PRODUCT = "a table of statistics: for each released pair of columns MIC, its limits, and a distance"
INPUTS = (
    "n, the names and kinds of columns, their bounds and categories, and all settings; they have "
    "to be known without the data"
)
MODEL = "central: one trusted curator holds the records and the key"
INTERACTIVE = "no: one query, fixed before values are read"
NEIGHBOURS = "bounded, replace-one: n is the same and public, all records of one person differ"
NOT_COVERED = (
    "correlated records of different persons; facts about groups and the population; n; releases "
    "that were not charged to the ledger; timing and memory of the machine"
)
POST_PROCESSING = (
    "clipping to [0, 1], limits, decisions, estimates of MIC, order of rows, pictures: all from "
    "released values only"
)
SAMPLER = (
    "integers from ChaCha20 compared with exact thresholds; the distance from the ideal "
    "distribution is certified, and part of the guarantee"
)
KEY = "256 bits of the operating system, used for one event, destroyed with the run"
SEEDED_KEY = "seeded: the noise can be removed, not for release"
AUDITS = (
    "exact losses on small tables, sampled audits with controls of 2/3 of the noise, an audit by "
    "jax-privacy: docs/audited.md"
)
SIDE_CHANNELS = (
    "floating point: none, all is integer arithmetic; timing and caches: parsing and counting "
    "depend on the data, and must not be observed; errors: of structure only; files: the key and "
    "encrypted scores, removed at the end of the run"
)
FAILURE = "interrupted runs are charged once and resume with the same noise"
BIAS = (
    "noise is the same for all pairs, so weak dependences, small groups and rare categories are "
    "the first to be missed: what is not starred is not shown to be independent. Clipping to the "
    "bounds and common bins for values outside them move extreme values"
)

# Hazards, and what this library does about each of them.
HAZARDS = {
    "small groups and contributions without bound": (
        "each person counts with a bounded number of records; values are clipped to public bounds"
    ),
    "a range that depends on the data": (
        "bounds are declared, or learned with a charge of their own; they are never read off the "
        "table, and a curator who does so is not detected"
    ),
    "a budget that renews itself": "a ledger has one total and no period",
    "several releases without one ledger": (
        "a ledger belongs to the columns of a table, and refuses others; a second ledger for the "
        "same table is not detected"
    ),
    "tuning on the private data": "settings follow from n and the budget; none is fitted to values",
    "release of intermediate results": (
        "all that a screen releases is in its result; its folder keeps scores encrypted, until "
        "the run ends"
    ),
    "seeds and keys that are used again": (
        "every run has a random number in its event, on which noise depends; seeded results are "
        "marked wherever they are shown"
    ),
    "parameters that were chosen by looking": (
        "epsilon, bounds and query are fixed before the charge; whether somebody looked before "
        "that cannot be seen here"
    ),
}
