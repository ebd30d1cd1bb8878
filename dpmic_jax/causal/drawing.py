"""Draw the graph of a search with matplotlib and networkx."""

from pathlib import Path

from dpmic_jax.causal.result import CausalResult


def draw(result: CausalResult, path: Path | str) -> None:
    """Save a picture of the graph: columns on a circle, arrows for directed edges, else lines.

    The privacy statement is the title.
    """
    try:
        import networkx
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'drawings need matplotlib and networkx: pip install "dpmic_jax[plot,causal]"'
        ) from error
    size = 4 + len(result.names) / 6
    figure = Figure(figsize=(size, size))
    FigureCanvasAgg(figure)  # a figure without pyplot leaves no global state and needs no display
    panel = figure.add_subplot()
    graph, places = result.graph, networkx.circular_layout(result.skeleton)
    arrows = [(x, y) for x, y in graph.edges if not graph.has_edge(y, x)]
    lines = [(x, y) for x, y in graph.edges if graph.has_edge(y, x) and x < y]
    common = {"ax": panel, "node_size": 1500}
    networkx.draw_networkx_nodes(graph, places, node_color="white", edgecolors="black", **common)
    networkx.draw_networkx_labels(graph, places, ax=panel, font_size=8)
    networkx.draw_networkx_edges(graph, places, edgelist=arrows, arrows=True, **common)
    networkx.draw_networkx_edges(
        graph, places, edgelist=lines, arrows=True, arrowstyle="-", **common
    )
    panel.set_axis_off()
    line = result.privacy.line if result.privacy else "not private: made without noise"
    panel.set_title(line, fontsize=7, wrap=True)
    panel.margins(0.15)
    figure.savefig(path, dpi=130)
