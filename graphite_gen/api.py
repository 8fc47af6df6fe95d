"""The library in five words: load, fit, sample, complete, nll. The commands call the same functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .completion import CHAIN_STEPS, RUNS, Completion, PartialGraph, complete
from .data.dataset import Dataset, split_graphs
from .errors import CheckpointError, ConfigError
from .families import Family, family
from .families.simulate import training_set
from .graph import SimpleGraph, as_simple_graph
from .io import GraphReader, read_graphs
from .io.locks import claimed
from .likelihood import estimate_nll
from .likelihood.annealed import CHAINS, STEPS
from .records import NLLEstimate, Provenance, TrainRecord
from .sampling import Constraint, Sampler
from .training.checkpoint import (
    TrainedModel,
    find_checkpoint,
    is_network_model,
    load_checkpoint,
    read_config,
    save_checkpoint,
)
from .training.trainer import prepare, read_history, resolve_device

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Model", "fit", "load"]

LOCAL = Path("checkpoints")
NODES = (10, 20)
FROM_GRAPHS = ("observation", "max_nodes", "node_features")


@dataclass(frozen=True)
class Model:
    """A trained model to sample from and to score graphs with.

    Attributes:
        trained: The network and what belongs to it.
        history: The records of its training, where they were kept.
    """

    trained: TrainedModel
    history: tuple[TrainRecord, ...] = ()

    def __repr__(self) -> str:
        config, sizes = self.trained.config, self.trained.sizes
        parameters = sum(parameter.numel() for parameter in self.trained.network.parameters())

        return (
            f"Model('{self.trained.name}', {config.kind}, {parameters:,} parameters, "
            f"{min(sizes.graphs)} to {sizes.largest} nodes)"
        )

    def sample(
        self,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int = 0,
        connected: bool = False,
        constraints: Sequence[Constraint] = (),
        largest_component: bool = False,
        with_latents: bool = False,
        features: Iterable[nx.Graph | SimpleGraph] = (),
        decoding_steps: int | None = None,
    ) -> list[nx.Graph]:
        """New graphs from the prior, for networkx.

        Arguments:
            count: How many.
            nodes: Their number of nodes, or a range to draw it from; None for the sizes of the training graphs.
            seed: Graph i is the same for a seed, however many are drawn.
            connected: Whether graphs must be connected.
            constraints: What every graph must be, such as ``[gg.Tree()]`` or ``[gg.Planar(), gg.MaxDegree(4)]``. The
                graph attributes ``constraints`` and ``enforced`` say what was, and how.
            largest_component: Keep the largest component of each graph.
            with_latents: Keep each node's latents as node attributes ``z0``, ``z1``, ….
            features: Graphs whose node features condition a model trained with features; used in turn.
            stages: In how many stages a staged model decides, 0 for one pair at a time; None for its default.
        """
        sampler = Sampler(
            self.trained,
            count,
            nodes=nodes,
            seed=seed,
            connected=connected,
            constraints=constraints,
            largest=largest_component,
            latents=with_latents,
            features=[as_simple_graph(graph) for graph in features],
            decoding_steps=decoding_steps,
        )

        return [graph.to_networkx() for graph in sampler]

    def complete(
        self,
        graph: nx.Graph | SimpleGraph,
        count: int,
        *,
        unknown: Iterable[Sequence[Any]] | None = None,
        unlisted: str | None = None,
        add_nodes: int = 0,
        seed: int = 0,
        particles: int | None = None,
        steps: int = CHAIN_STEPS,
        runs: int = RUNS,
        decoding_steps: int | None = None,
    ) -> Completion:
        """Complete a graph that is known in part: ``graphs`` of the result are samples, ``scores`` probabilities.

        Arguments:
            graph: The nodes and what is known of their pairs.
            count: How many completed graphs.
            unknown: The pairs of nodes of which nothing is known. None reads it off the edges: their attribute
                ``state`` is ``present``, ``absent`` or ``unknown``, and present where they have none.
            unlisted: With ``unknown=None``, what pairs are that are no edges: ``absent`` or ``unknown``. None is
                ``unknown`` where edges are marked absent and none unknown, else ``absent``.
            add_nodes: How many nodes to add, of whose pairs nothing is known.
            seed: Graph i is the same for a seed, however many are drawn.
            particles: Particles of each run; None for 256, or 64 of a staged model, which weighs all completions
                instead where they are few.
            steps: Steps by which chains move the particles of a staged model; more make the answer more exact. All
                completions are weighed by as much work as so many steps would be.
            runs: Runs, at least 2, whose differences tell how exact the answer is.
            stages: In how many stages a staged model decides, 0 for one pair at a time; None for its default.
        """
        simple = as_simple_graph(graph)
        if unknown is None:
            partial = PartialGraph.from_marks(simple, unlisted=unlisted, add_nodes=add_nodes)
        elif unlisted is not None:
            raise ConfigError("'unlisted' has no use where 'unknown' says which pairs are unknown. Pass one of them.")
        else:
            partial = PartialGraph.from_pairs(simple, unknown, add_nodes=add_nodes)

        return complete(
            self.trained,
            partial,
            count,
            seed=seed,
            particles=particles,
            steps=steps,
            runs=runs,
            decoding_steps=decoding_steps,
        )

    def nll(
        self,
        graphs: Iterable[nx.Graph | SimpleGraph],
        *,
        samples: int | None = None,
        seed: int = 0,
        convention: str = "pairs",
        method: str = "is",
        chains: int = CHAINS,
        steps: int = STEPS,
        curve: bool = False,
        decoding_steps: int | None = None,
    ) -> NLLEstimate:
        """The mean NLL of graphs, in nats per graph, with its standard error, its diagnostics and the ER baseline.

        Arguments:
            graphs: What to score.
            samples: Proposals per graph of importance sampling; None for 100 orders of a staged model, 1000 latents of
                another.
            seed: The run's one seed.
            convention: ``pairs`` (a law over graphs) or ``paper`` (all cells of the padded matrix).
            method: ``is`` for importance sampling, ``ais`` for annealed importance sampling, ``auto`` for the second
                where the first cannot be trusted.
            chains: Chains per graph of annealed importance sampling.
            steps: Temperatures of each chain.
            curve: Whether to keep what fewer samples would have given.
            stages: The stages of a staged model, 0 for one pair at a time; None for its default.
        """
        return estimate_nll(
            self.trained,
            map(as_simple_graph, graphs),
            samples,
            seed,
            convention,
            method=method,
            chains=chains,
            steps=steps,
            curve=curve,
            decoding_steps=decoding_steps,
        )

    def save(self, folder: str | Path) -> None:
        """Write the model as a checkpoint folder that ``load`` and every command reads."""
        save_checkpoint(self.trained, Path(folder))


def load(model: str | Path | None = None, *, device: str = "cpu") -> Model:
    """A model by path or name; None for the last one trained under ``./checkpoints``, else the bundled one.

    Raises:
        CheckpointError: There is none, it is damaged, or one of a single large graph.
    """
    folder = find_checkpoint(None if model is None else str(model), LOCAL)
    if is_network_model(read_config(folder)):
        raise CheckpointError(f"'{folder}' is a model of one large graph: 'graphite_gen.load_single' reads it.")
    trained = load_checkpoint(folder, resolve_device(device))

    return Model(trained, tuple(read_history(folder)) if (folder / "history.jsonl").exists() else ())


def fit(
    graphs: Iterable[nx.Graph | SimpleGraph] | Dataset | Family | str | Path,
    *,
    name: str = "model",
    preset_name: str = "default",
    seed: int = 0,
    device: str = "cpu",
    folder: str | Path | None = None,
    ignore_weights: bool = False,
    progress: Callable[[TrainRecord], None] | None = None,
    **settings: Any,
) -> Model:
    """Train a model on graphs, or on a family.

    Arguments:
        graphs: networkx graphs, a file of graphs, a data set, or a family or its name.
        name: What to call the model.
        preset_name: ``default`` (staged), ``one-shot`` or ``paper``.
        seed: The run's one seed.
        device: ``auto``, ``cpu`` or ``cuda``.
        folder: Where to keep checkpoints; None keeps the model in memory.
        ignore_weights: Learn which edges there are and not their weights; otherwise weighted graphs are modelled as
            normal weights on all pairs, as in the paper.
        progress: Called with a record after each epoch.
        settings: Any setting of :class:`ModelConfig` or :class:`TrainConfig`, such as ``epochs=20``.

    Raises:
        ConfigError: A setting is unknown, follows from the graphs, would change nothing or does not fit.
        DatasetError: There are no graphs, or they are of mixed kinds.
    """
    for key in FROM_GRAPHS:
        if key in settings:
            edges = " For edges alone pass ignore_weights=True." if key == "observation" else " Leave it out."
            raise ConfigError(f"'{key}' follows from the graphs.{edges}")
    provenance = Provenance()
    if isinstance(graphs, str | Path):
        is_file = isinstance(graphs, Path) or Path(graphs).exists()
        graphs = read_graphs(graphs) if is_file else family(str(graphs))
    if isinstance(graphs, GraphReader):
        provenance = graphs.provenance
    law = graphs if isinstance(graphs, Family) else None
    if isinstance(graphs, Family):
        graphs = training_set(graphs, preset_name=preset_name, count=None, nodes=NODES, seed=seed)
    if isinstance(graphs, Dataset):
        provenance, graphs = graphs.provenance, graphs.graphs
    simple = map(as_simple_graph, graphs)
    chosen = [graph.unweighted() if ignore_weights else graph for graph in simple]
    train, validation = split_graphs(chosen, seed)
    trainer = prepare(
        name,
        train,
        validation,
        settings,
        preset_name=preset_name,
        seed=seed,
        law=law,
        folder=None if folder is None else Path(folder),
        provenance=provenance,
        device=device,
    )
    with nullcontext() if trainer.folder is None else claimed(trainer.folder):
        for record in trainer:
            if progress is not None:
                progress(record)

    return Model(trainer.model, tuple(trainer.history))
