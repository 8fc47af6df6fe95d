import pytest
import torch

from graphite_gen.training.muon import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 5, 9), (2, 9, 5)])
def test_orthogonalised_matrices_keep_their_singular_vectors(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)

    inside = u.mT @ orthogonalised(matrices) @ v.mT

    singular = torch.diagonal(inside, dim1=-2, dim2=-1)
    assert torch.allclose(inside, torch.diag_embed(singular), atol=1e-6)
    assert singular.min() > 0.3
    assert singular.max() < 1.4


def test_updates_are_those_of_torch_in_its_precision() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(8, 8), (8, 16), (24, 8), (8, 8)]
    ours = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    theirs = [torch.nn.Parameter(matrix.detach().clone()) for matrix in ours]
    optimisers = Muon(ours, lr=0.02, weight_decay=0.1), torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1)

    for _ in range(5):
        for own, other in zip(ours, theirs, strict=True):
            own.grad = torch.randn(own.shape, generator=generator)
            other.grad = own.grad.clone()
        for optimiser in optimisers:
            optimiser.step()

    for own, other in zip(ours, theirs, strict=True):
        # Half precision has three digits, and the iteration carries five steps of them.
        assert (own - other).norm() < 2e-3 * other.norm()


def test_matrices_without_a_gradient_stay_as_they_are() -> None:
    used, unused = (torch.nn.Parameter(torch.ones(4, 4)) for _ in range(2))
    used.grad = torch.eye(4)

    Muon([used, unused], lr=0.1, weight_decay=0.1).step()

    assert torch.equal(unused, torch.ones(4, 4))
    assert not torch.equal(used, torch.ones(4, 4))
