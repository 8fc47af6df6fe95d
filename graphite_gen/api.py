"""The high-level API: load or fit a model, sample, encode, decode and complete graphs, and estimate their NLL."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .completion import CHAIN_STEPS, RUNS, Completion, PartialGraph, complete
from .config import ModelConfig, current_names
from .data.dataset import Dataset, split_graphs
from .data.encoded import EncodedGraph
from .errors import CheckpointError, ConfigError, DatasetError
from .families import Family
from .families import family as family_of
from .families.simulate import training_set
from .graph import SimpleGraph, as_simple_graph, is_igraph, require_undirected
from .io import GraphReader, read_graphs
from .io.locks import locked
from .likelihood import NLLOptions, estimate_nll
from .likelihood.annealed import CHAINS, STEPS
from .records import NLLEstimate, Provenance, TrainRecord
from .rng import seed_or_new
from .sampling import Constraint, Sampler
from .sampling.encoding import encode_graphs
from .sampling.interpolation import interpolate
from .sampling.reconstruction import Reconstruction, reconstruct
from .training.bar import with_bar
from .training.checkpoint import (
    TrainedModel,
    find_checkpoint,
    is_network_model,
    load_checkpoint,
    read_config,
    save_checkpoint,
)
from .training.runs import check_resumed, claim_folder, fingerprint
from .training.trainer import RUN, Trainer, check_settings, naming, prepare, read_history, read_run, resolve_device

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

__all__ = ["GraphGenerator", "Model", "fit", "load"]

LOCAL = Path("checkpoints")
NODES = (10, 20)
# Settings of a model that follow from the graphs.
_FOLLOWING = (
    *("observation", "max_nodes", "node_features", "node_labels", "edge_labels", "directed", "conditions"),
    "feature_kinds",
)


@dataclass(frozen=True)
class Model:
    """A trained model.

    Attributes:
        trained: The network with its settings and size distribution.
        history: The records of its training, if available.
    """

    trained: TrainedModel
    history: tuple[TrainRecord, ...] = ()

    def __repr__(self) -> str:
        name, kind, sizes = self.trained.name, self.trained.config.kind, self.trained.sizes
        parameters = sum(parameter.numel() for parameter in self.trained.network.parameters())

        return f"Model('{name}', {kind}, {parameters:,} parameters, {min(sizes.graphs)} to {sizes.largest} nodes)"

    @property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.trained.config

    def sample(
        self,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int | None = None,
        connected: bool = False,
        constraints: Sequence[Constraint] = (),
        largest_component: bool = False,
        with_latents: bool = False,
        features: Iterable[nx.Graph | SimpleGraph] = (),
        given: Mapping[str, Any] | None = None,
    ) -> list[nx.Graph]:
        """Sample networkx graphs from the prior.

        Arguments:
            count: The number of graphs.
            nodes: The number of nodes or its range; None for the size distribution of the training graphs.
            seed: The seed; graph i does not depend on ``count``. None draws other graphs at every call.
            connected: Whether graphs must be connected.
            constraints: Constraints on every graph, such as ``[gg.Tree()]`` or ``[gg.Planar(), gg.MaxDegree(4)]``. The
                graph attributes ``constraints`` and ``enforced`` record them.
            largest_component: Whether to keep only the largest component of each graph.
            with_latents: Whether to store the latents of each node as attributes ``z0``, ``z1``, ….
            features: Graphs whose node features condition a model trained with node features; used in turn.
            given: Values of conditions that the model was trained with, such as ``{"class": 2}``, or a range as in
                ``{"clustering": (0.4, 0.5)}``. Others are those of training graphs that agree with these.
        """
        sampler = Sampler(
            self.trained,
            count,
            nodes=nodes,
            seed=seed_or_new(seed),
            connected=connected,
            constraints=constraints,
            largest=largest_component,
            latents=with_latents,
            features=[require_undirected(as_simple_graph(graph)) for graph in features],
            given=given,
        )
        for name in sampler.outside:
            warnings.warn(f"'{name}' is outside the range of the training graphs.", stacklevel=2)

        return [graph.to_networkx() for graph in sampler]

    def encode(self, graphs: Iterable[nx.Graph | SimpleGraph], *, seed: int = 0) -> list[EncodedGraph]:
        """Encode graphs: posterior means and standard deviations of the latents of their nodes.

        Each result also has a ``vector`` for the graph as a whole. The latents do not depend on the node numbers.

        Arguments:
            graphs: The graphs.
            seed: The seed of the encoder's random features, the same for all graphs; latents of different seeds are not
                comparable, so this seed is fixed.
        """
        return list(encode_graphs(self.trained, list(_simple_graphs(graphs)), seed))

    def decode(
        self,
        z: EncodedGraph | NDArray[Any] | Sequence[EncodedGraph | NDArray[Any]],
        count: int = 1,
        *,
        seed: int | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[nx.Graph]:
        """Sample graphs given latents.

        Arguments:
            z: An encoded graph, whose latents are drawn from its posterior, or latents with shape :math:`(n, D)`, which
                are decoded in random node orderings; or a sequence of these.
            count: The number of graphs for each of them; with several, graph i is decoded from number ``i % len(z)``.
            seed: The seed; None for a new one at every call.
            constraints: Constraints on every graph, as for :meth:`sample`.
        """
        given: list[Any] = [z] if isinstance(z, EncodedGraph) or getattr(z, "ndim", 0) == 2 else list(z)
        encoded = [one if isinstance(one, EncodedGraph) else EncodedGraph.exact(one) for one in given]
        if not encoded:
            raise ConfigError("There are no latents to decode.")
        sampler = Sampler(
            self.trained, count * len(encoded), seed=seed_or_new(seed), constraints=constraints, encoded=encoded
        )

        return [graph.to_networkx() for graph in sampler]

    def reconstruct(self, graphs: Iterable[nx.Graph | SimpleGraph], *, seed: int | None = None) -> Reconstruction:
        """Encode graphs and decode them from their own latents; the result tells how many edges come back."""
        return reconstruct(self.trained, list(_simple_graphs(graphs)), seed_or_new(seed))

    def interpolate(
        self,
        a: nx.Graph | SimpleGraph,
        b: nx.Graph | SimpleGraph,
        n: int = 10,
        *,
        seed: int | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[nx.Graph]:
        """Decode ``n`` graphs on a path of latents from ``a`` to ``b``; the graph attribute ``t`` is the place on it.

        See :func:`graphite_gen.sampling.interpolation.latent_path` for how nodes are matched.
        """
        ends = as_simple_graph(a), as_simple_graph(b)
        path = interpolate(self.trained, *ends, n, seed=seed_or_new(seed), constraints=constraints)

        return [graph.to_networkx() for graph in path]

    def complete(
        self,
        graph: nx.Graph | SimpleGraph,
        count: int,
        *,
        unknown: Iterable[Sequence[Any]] | None = None,
        unlisted: str | None = None,
        add_nodes: int = 0,
        seed: int | None = None,
        particles: int | None = None,
        steps: int = CHAIN_STEPS,
        runs: int = RUNS,
    ) -> Completion:
        """Complete a partially observed graph: the result has samples (``graphs``) and edge probabilities (``scores``).

        Arguments:
            graph: The nodes and the known pairs.
            count: The number of completed graphs.
            unknown: The unknown pairs of nodes. None takes them from the edge attribute ``state``, which is
                ``present`` (the default), ``absent`` or ``unknown``.
            unlisted: With ``unknown=None``, the state of pairs that are not listed as edges: ``absent`` or ``unknown``.
                None for ``unknown`` if edges are marked absent and none unknown, else ``absent``.
            add_nodes: The number of nodes to add, all of whose pairs are unknown.
            seed: The seed; graph i does not depend on ``count``. None draws other graphs at every call.
            particles: Particles of each run; None for 256, or 64 for an autoregressive model, which enumerates all
                completions instead if they are few.
            steps: MCMC steps per particle of an autoregressive model; more are more accurate. Enumeration is limited to
                the same amount of work.
            runs: Independent runs, at least 2, whose differences measure the accuracy.
        """
        if unknown is not None and unlisted is not None:
            raise ConfigError("Pass either 'unknown' or 'unlisted', not both.")
        simple = as_simple_graph(graph)
        if unknown is None:
            partial = PartialGraph.from_marks(simple, unlisted=unlisted, add_nodes=add_nodes)
        else:
            partial = PartialGraph.from_pairs(simple, unknown, add_nodes=add_nodes)

        how: dict[str, Any] = {"particles": particles, "steps": steps, "runs": runs}

        return complete(self.trained, partial, count, seed=seed_or_new(seed), **how)

    def nll(
        self,
        graphs: Iterable[nx.Graph | SimpleGraph],
        *,
        samples: int | None = None,
        seed: int | None = None,
        convention: str = "pairs",
        method: str = "is",
        chains: int = CHAINS,
        steps: int = STEPS,
        curve: bool = False,
    ) -> NLLEstimate:
        """Estimate the mean NLL of graphs, in nats per graph, with standard error, diagnostics and ER baseline.

        The keyword arguments are those of :class:`graphite_gen.likelihood.NLLOptions`.
        """
        options = NLLOptions(samples, seed_or_new(seed), convention, method, chains, steps, curve)

        return estimate_nll(self.trained, _simple_graphs(graphs), options)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the model as a checkpoint folder for :func:`load` and all commands; ``force`` replaces another one."""
        place = Path(folder)
        _claim(place, force, "force=True replaces it")
        save_checkpoint(self.trained, place)
        # The run of another model cannot be resumed with these weights.
        for name in (RUN, "state.json", "history.jsonl"):
            (place / name).unlink(missing_ok=True)


def load(model: str | Path | None = None, *, device: str = "cpu") -> Model:
    """Load a model by path or name; None for the last one trained under ``./checkpoints``, else a bundled one."""
    folder = find_checkpoint(None if model is None else str(model), LOCAL)
    if is_network_model(read_config(folder)):
        raise CheckpointError(f"'{folder}' is a model of one network: use 'graphite_gen.load_network'.")
    trained = load_checkpoint(folder, resolve_device(device))

    return Model(trained, tuple(read_history(folder)) if (folder / "history.jsonl").exists() else ())


def fit(
    graphs: Iterable[nx.Graph | SimpleGraph] | Dataset | Family | str | Path,
    *,
    name: str = "model",
    preset: str = "default",
    seed: int | None = None,
    device: str = "cpu",
    folder: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    nodes: tuple[int, int] = NODES,
    simplify: bool = False,
    ignore_weights: bool = False,
    initial: Model | str | Path | None = None,
    progress: bool | Callable[[TrainRecord], None] = True,
    **settings: Any,
) -> Model:
    """Train a model on graphs, or on a family.

    Arguments:
        graphs: networkx or igraph graphs, a file of graphs, a dataset, or a family or its name.
        name: The name of the model.
        preset: ``default`` (autoregressive), ``one-shot`` or ``paper``.
        seed: The seed of the run; None for a new one, which is ``model.trained.training.seed``.
        device: ``auto``, ``cpu`` or ``cuda``.
        folder: Where to save checkpoints; None to keep the model in memory only.
        force: Whether to replace a model in the folder.
        resume: Whether to continue the run in the folder, on the same graphs, if there is one; more ``epochs`` or a
            larger ``budget`` extend it.
        nodes: The smallest and the largest number of nodes of a family's graphs.
        simplify: Whether to drop directions, self-loops and repeated edges of a file's graphs.
        ignore_weights: Whether to drop edge weights; otherwise weighted graphs are modelled as normal weights on all
            pairs, as in the paper.
        initial: A model to fine-tune, or its path or name: training starts with its weights, at a lower learning rate,
            and its architecture is kept.
        progress: Whether to show a progress bar, in terminals and notebooks; or a function that is called with a record
            after each epoch.
        settings: Any setting of :class:`ModelConfig` or :class:`TrainConfig`, such as ``epochs=20``, or
            ``budget=600`` in seconds; and what graphs carry: ``node_label`` and ``edge_label`` name attributes to
            generate, ``generate_features`` numeric ones of nodes (True for all, ``features`` included), ``condition``
            names attributes or properties of graphs that samples can be given.

    Raises:
        ConfigError: A setting is unknown, follows from the graphs, has no effect or does not fit.
        DatasetError: There are no graphs, or they are of different kinds.
        CheckpointError: The folder has a model already, or a run that does not fit.
    """
    for key in _FOLLOWING:
        if key in settings:
            edges = " To drop edge weights, pass ignore_weights=True." if key == "observation" else ""
            raise ConfigError(f"'{key}' follows from the graphs and cannot be set.{edges}")
    if resume and folder is None:
        raise ConfigError("'resume' needs 'folder', where the run was saved.")
    place = None if folder is None else Path(folder)
    resumes = resume and place is not None and (place / RUN).exists()
    if resumes and place is not None:
        saved = load_checkpoint(place)
        seed = saved.training.seed if seed is None else seed
    seed = seed_or_new(seed)
    start = None
    if initial is not None and preset != "default":
        raise ConfigError("Pass either 'initial' or 'preset', not both: fine-tuning keeps the architecture of a model.")
    if initial is not None and not resumes:
        start = (initial if isinstance(initial, Model) else load(initial)).trained
    if isinstance(graphs, str) and not Path(graphs).exists() and not Path(graphs).suffix:
        graphs = family_of(graphs)
    if isinstance(graphs, Family) and not resumes:
        check_settings(preset, settings, start)
        # A model of a family generates what its graphs carry.
        if graphs.node_label is not None and start is None:
            settings = {"node_label": graphs.node_label, **settings}
    found, provenance = _graphs_to_fit(graphs, preset, nodes, seed, simplify)
    train, validation = split_graphs([graph.unweighted() if ignore_weights else graph for graph in found], seed)
    with nullcontext() if place is None else locked(place):
        names = saved.schema.naming() if resumes else naming(settings) if start is None else start.schema.naming()
        digest = {"fingerprint": fingerprint([*train, *validation], **names)}
        about: dict[str, Any] = {"folder": place, "provenance": provenance, "data": digest}
        if resumes and place is not None:
            length = check_resumed(place, saved, {**current_names(settings), "seed": seed})
            if read_run(place)["data"].get("fingerprint") != digest["fingerprint"]:
                problem = f"The graphs are not those that the run in '{place}' was trained on."
                raise CheckpointError(problem, reason="resume-other-graphs")
            train, validation = ([saved.read(graph, i) for i, graph in enumerate(part)] for part in (train, validation))
            own = (saved.name, saved.config, saved.training, train, validation)
            trainer = Trainer(*own, schema=saved.schema, device=resolve_device(device), resume=True, **about)
            trainer.extend(**length)
        else:
            if place is not None:
                _claim(place, force, "force=True replaces it, resume=True continues its run")
            about |= {"preset_name": preset, "seed": seed, "device": device, "initial": start}
            trainer = prepare(name, train, validation, settings, **about)
        for record in with_bar(trainer) if progress is True else trainer:
            if callable(progress):
                progress(record)

    return Model(trainer.model, tuple(trainer.history))


def _graphs_to_fit(
    graphs: Any, preset: str, nodes: tuple[int, int], seed: int, simplify: bool
) -> tuple[list[SimpleGraph], Provenance]:
    """The graphs of any source, and their provenance."""
    if isinstance(graphs, str | Path):
        graphs = read_graphs(graphs, simplify=simplify)
    if isinstance(graphs, Family):
        graphs = training_set(graphs, preset_name=preset, count=None, nodes=nodes, seed=seed)
    if _is_graph(graphs):
        problem = "'graphs' is one graph; expected a list of graphs. 'fit_network' trains on one large network."
        raise DatasetError(problem)
    if not isinstance(graphs, Iterable):
        kinds = "a list of networkx graphs, a file, a dataset, or a family or its name"
        raise DatasetError(f"'graphs' is {graphs!r}; expected {kinds}.")
    provenance = graphs.provenance if isinstance(graphs, GraphReader | Dataset) else Provenance()

    return list(_simple_graphs(graphs)), provenance


def _is_graph(graphs: Any) -> bool:
    return hasattr(graphs, "is_multigraph") or is_igraph(graphs) or isinstance(graphs, SimpleGraph)


def _simple_graphs(graphs: Iterable[Any]) -> Iterator[SimpleGraph]:
    """Convert graphs, which are not one graph or a table by mistake."""
    if _is_graph(graphs):
        raise DatasetError("'graphs' is one graph; expected a list of graphs.")
    if hasattr(graphs, "columns"):
        raise DatasetError("'graphs' is a table; 'from_pandas' makes graphs of it.")

    return map(as_simple_graph, graphs)


def _claim(folder: Path, force: bool, remedy: str) -> None:
    """Check that a model can be written to a folder, and state the remedy as an argument if there is one already."""
    try:
        claim_folder(folder, force)
    except CheckpointError as error:
        if error.reason.startswith("folder-exists"):
            raise CheckpointError(f"'{folder}' exists: {remedy}.", reason=error.reason, folder=folder) from None
        raise


class GraphGenerator:
    """A model in the style of scikit-learn: ``GraphGenerator(epochs=20).fit(graphs).sample(10)``.

    Attributes:
        model_: The fitted :class:`Model`.
    """

    def __init__(self, *, preset: str = "default", seed: int | None = None, progress: bool = False, **settings: Any):
        """Keep the arguments of :func:`fit` for later."""
        self._parameters: dict[str, Any] = {"preset": preset, "seed": seed, "progress": progress, **settings}

    def __repr__(self) -> str:
        return f"GraphGenerator({', '.join(f'{name}={value!r}' for name, value in self._parameters.items())})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters."""
        return dict(self._parameters)

    def set_params(self, **parameters: Any) -> GraphGenerator:
        """Change some parameters."""
        self._parameters.update(parameters)

        return self

    def fit(self, graphs: Any, y: object = None) -> GraphGenerator:
        """Train on graphs, as :func:`fit`; ``y`` is ignored."""
        self.model_ = fit(graphs, **self._parameters)

        return self

    def sample(self, count: int = 1, **options: Any) -> list[nx.Graph]:
        """Sample graphs, see :meth:`Model.sample`."""
        return self._fitted.sample(count, **options)

    def score(self, graphs: Iterable[nx.Graph | SimpleGraph], y: object = None) -> float:
        """The mean log-likelihood of graphs, in nats per graph, estimated with the generator's seed."""
        return -self._fitted.nll(graphs, seed=self._parameters["seed"]).nll

    @property
    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise ConfigError("The generator is not fitted: call 'fit' first.")

        return self.model_
