"""The experiments of the MIC paper, reproduced, with this package's mechanisms beside them.

The paper is "Differentially Private Maximal Information Coefficients" (Lazarsfeld, Johnson and
Adeniran 2022), section 5 and appendix E. Import the modules you need:

    from dpmic_jax.paper import collections, family, figures, published_values, real, synthetic

`family`: the 189 synthetic distributions, each with its MIC* (`functions`, `mixtures`,
`mic_star`).
`synthetic`: every mechanism on samples of these distributions, for figures 2 and 4.
`collections`, `real`: the real data, and every mechanism on it, for Tables 1 and 3 and figures 3
and 5.
`tuning`, `objective`, `select_defaults`: the search behind Table 2 and behind this package's
default settings.
`ablations`, `shapes`: experiments beyond the paper's.
`calibration`: the table behind `VariationLap`'s estimate of MIC*.
`dependences`, `distances`: the table behind a screen's estimate of MIC* from the distance.
`published_values`: the numbers that the paper prints.
`figures`, `summary`, `page`: the paper's figures and ours, and the page of results.
`store`: keeps the finished parts of a long computation on disk.
"""
