"""Train the bundled models, score them on fresh graphs and write their model cards: ``make checkpoints``.

Each model is the result of ``graphite-gen train --family F`` with a number of epochs instead of a budget, so that it
does not depend on the speed of the machine, including the pilot runs that choose the node ordering. ``--preset
one-shot`` trains those with a one-shot decoder. Two models train at a time, with one thread each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from graphite_gen.evaluation.activity import latent_activity
from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.families.simulate import generate
from graphite_gen.likelihood import NLLOptions, bdmc_nll, estimate_nll
from graphite_gen.likelihood.estimate import default_samples
from graphite_gen.likelihood.excess import find_entropy
from graphite_gen.sampling.encoding import encode_graphs
from graphite_gen.training.checkpoint import TrainedModel, load_checkpoint
from graphite_gen.training.model_card import latents_in_words

ROOT = Path(__file__).resolve().parents[2]
RUN_FILES = ("optimizer.safetensors", "state.json")
TEST_SEED = 1000
# Families that are harder to learn get more epochs.
EPOCHS = {"erdos-renyi": 12, "ego": 18, "powerlaw-tree": 30, "regular": 45, "barabasi": 45, "geometric": 72}
ONE_SHOT_EPOCHS = 80

CARD = """# {name}

{what} (`{kind}`, {parameters:,} parameters, latent dimension {latent}) of the family `{family}`
({settings}), for graphs of {low} to {high} nodes.

| | nats per graph |
|---|---|
| held-out NLL, pairs i<j, {graphs} fresh graphs, K = {samples} | {nll:.2f} ± {error:.2f} |
| entropy of the family, {which} | {entropy} |
| ER baseline, same graphs | {baseline:.2f} |
| KL divergence of the posterior from the prior, same graphs | {kl:.2f} |
| mutual information of graphs and latents (an upper bound), same graphs | {mutual_information:.2f} |
| BDMC gap, {check_graphs} graphs sampled from the model, {how} | {gap} |

- **Data**: {training} training and {validation} validation graphs sampled from the family with seed {seed}.
- **Trained by** `{command}`: {epochs} epochs, best at {best}, {seconds:.0f} s on one core of a busy machine.{ordering}
- **Latents**: {latents}
- **Scored by** `graphite-gen generate --family {family} --graphs {graphs} --seed {test_seed} -o test.h5` and
  `graphite-gen nll test.h5 --model {name} --split all -k {samples} --check --check-graphs {check_graphs}`.
- **Limits**: {limits}
"""
LIMITS = {
    True: """it was trained on graphs of these sizes; larger ones may not follow the family.
  The likelihood does not depend on node labels.""",
    False: """edges are independent given the latents, so a sample need not satisfy the hard constraints of the family.
  The likelihood does not depend on node labels.""",
}


def name_of(family_name: str, preset: str) -> str:
    """Return the name of the bundled model of a family."""
    return family_name if preset == "default" else f"{family_name}-{preset}"


def options(family_name: str, preset: str, seed: int) -> list[str]:
    """Return the options of 'train' for the model of a family."""
    is_default = preset == "default"
    chosen = [] if is_default else ["--preset", preset, "--name", name_of(family_name, preset)]
    epochs = EPOCHS[family_name] if is_default else ONE_SHOT_EPOCHS

    return ["--family", family_name, *chosen, "--epochs", str(epochs), "--seed", str(seed), "--threads", "1"]


def train(family_name: str, preset: str, seed: int) -> Path:
    """Train the model of one family from scratch and return its folder."""
    command = [sys.executable, "-m", "graphite_gen", "train", *options(family_name, preset, seed)]
    subprocess.run([*command, "--force", "--out", str(ROOT / "checkpoints")], check=True)

    return bundled(family_name, preset, seed)


def bundled(family_name: str, preset: str, seed: int) -> Path:
    """Return the folder of an existing model."""
    return ROOT / "checkpoints" / name_of(family_name, preset)


def describe_ordering(model: TrainedModel) -> str:
    """Return the line of a card about the node ordering, and by how much it was better than the next one."""
    if not model.config.is_autoregressive:
        return ""
    line = f"\n- **Node ordering**: `{model.config.ordering}`"
    margin = model.results.get("ordering_margin")

    return f"{line}." if margin is None else f"{line}, {margin:.2f} nats per graph better than the next in pilot runs."


def write_card(folder: Path, graphs: int, samples: int | None, check_graphs: int) -> str:
    """Score a model on fresh graphs, run BDMC, write its card, and delete the files that only resuming needs."""
    model = load_checkpoint(folder)
    autoregressive = model.config.is_autoregressive
    samples = samples or default_samples(model)
    process = family(str(model.provenance.family))
    test = generate(process, graphs, seed=TEST_SEED).graphs
    estimate = estimate_nll(model, test, NLLOptions(samples))
    entropy = find_entropy(process, test, [row.nll for row in estimate.per_graph])
    check = bdmc_nll(model, check_graphs, NLLOptions(samples))
    gap = f"{check.gap:.2f} ± {check.gap_standard_error:.2f}"
    results, activity = model.results, latent_activity(list(encode_graphs(model, test))).to_json()
    given = options(process.name, "default" if autoregressive else "one-shot", model.training.seed)
    card = CARD.format(
        name=model.name,
        what="An autoregressive Graphite-VAE" if autoregressive else "A one-shot Graphite-VAE",
        kind=model.config.kind,
        family=process.name,
        parameters=sum(parameter.numel() for parameter in model.network.parameters()),
        latent=model.config.latent,
        settings=", ".join(f"{key} = {value}" for key, value in process.parameters().items()),
        low=min(model.sizes.graphs),
        high=model.sizes.largest,
        graphs=graphs,
        samples=samples,
        nll=estimate.nll,
        error=estimate.standard_error,
        which="same graphs" if entropy.paired else "expected for these sizes",
        entropy=f"{entropy.nats:.2f}" + ("" if entropy.paired else f" ± {entropy.standard_error:.2f}"),
        baseline=estimate.baseline,
        kl=activity["kl"],
        mutual_information=activity["mutual_information"],
        latents=latents_in_words({**activity, "gain": results.get("gain")}, model.config.latent, process.name).rstrip(
            "."
        )
        + ".",
        check_graphs=check.graphs,
        how=f"K = {samples}" if autoregressive else f"{check.chains} chains of {check.steps} temperatures",
        gap=gap,
        training=results["training_graphs"],
        validation=results["validation_graphs"],
        seed=model.training.seed,
        test_seed=TEST_SEED,
        command=f"graphite-gen train {' '.join(given)}",
        epochs=results["epochs"],
        best=results["best_epoch"],
        seconds=results["seconds"],
        ordering=describe_ordering(model),
        limits=LIMITS[autoregressive],
    )
    (folder / "README.md").write_text(card, encoding="utf-8")
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)

    return f"{model.name:14} NLL {estimate.nll:6.2f}  ER baseline {estimate.baseline:6.2f}  gap {gap}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=sorted(PAPER_FAMILIES), help="families to train; all by default")
    parser.add_argument("--preset", choices=("default", "one-shot"), default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--graphs", type=int, default=300, help="fresh graphs to score on")
    parser.add_argument("--samples", type=int, help="proposals per graph; by default that of the model")
    parser.add_argument("--check-graphs", type=int, default=100, help="graphs for BDMC, at least 2")
    parser.add_argument(
        "--cards", action="store_true", help="do not train, only score the models and write their cards"
    )
    arguments = parser.parse_args()

    started = time.monotonic()
    torch.set_num_threads(1)
    with ThreadPoolExecutor(max_workers=2) as pool:
        make = bundled if arguments.cards else train
        for folder in pool.map(lambda name: make(name, arguments.preset, arguments.seed), arguments.families):
            print(write_card(folder, arguments.graphs, arguments.samples, arguments.check_graphs), flush=True)
    print(f"all in {(time.monotonic() - started) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
