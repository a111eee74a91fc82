"""PyTorch models, from a file and from memory, against plain forward passes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from unpacked_codes import bits_of

from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models.protocol import HasCodes
from kdcal_core.models.torch_model import load, wrap_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
nn = torch.nn


class Mlp(nn.Module):
    def __init__(self, end=None, inplace=False):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c = nn.Linear(4, 70), nn.Linear(70, 5), nn.Linear(5, 3)
        self.norm, self.drop = nn.BatchNorm1d(70), nn.Dropout(0.5)
        self.norm.running_mean.uniform_(-0.1, 0.1)
        self.act = nn.ReLU(inplace=inplace)
        self.end = end
        self.scale = torch.linspace(0.5, 2, 4)

    def hidden(self, x):
        first = torch.relu(self.norm(self.a(x * self.scale)))
        return first, torch.relu(self.b(self.drop(first)))

    def forward(self, x):
        x = self.act(self.norm(self.a(x * self.scale)))
        x = self.c(F.relu(self.b(self.drop(x))))
        return x if self.end is None else self.end(x)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.members = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
            for _ in range(4)
        )

    def forward(self, x):
        return torch.stack([torch.softmax(member(x), 1) for member in self.members]).mean(0)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(36, 3)
        self.pool, self.act = nn.MaxPool2d(2), nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.pool(self.act(self.norm(self.conv(x))))
        return F.log_softmax(self.out(x.view(x.size(0), -1)), dim=1)


def _softmax(x):
    return torch.softmax(x, 1)


def _log_softmax(x):
    return torch.log_softmax(x, -1)


def export(model, path, shape=(4,), *, batch=None, **extra):
    dynamic = ({0: torch.export.Dim.AUTO},) if batch is None else None
    program = torch.export.export(
        model.eval(), (torch.randn(batch or 5, *shape),), dynamic_shapes=dynamic
    )
    torch.export.save(program, path, extra_files={k: json.dumps(v) for k, v in extra.items()})
    return path


def _model(how, model, tmp_path, shape=(4,), **options):
    if how == "file":
        return load(export(model, tmp_path / "m.pt2", shape, **options), name="m.pt2")
    return wrap_module(model, input_shape=shape if len(shape) > 1 else None, **options)


@pytest.fixture
def X():  # noqa: N802
    return np.random.default_rng(1).normal(size=(150, 4)).astype(np.float32).astype(float)


both = pytest.mark.parametrize("how", ["file", "memory"])


@both
@pytest.mark.parametrize("end", [None, _softmax, _log_softmax])
@pytest.mark.parametrize("inplace", [True, False])
def test_a_network_against_its_forward_pass(how, end, inplace, tmp_path, X):
    model = Mlp(end, inplace)
    wrapped = _model(how, model, tmp_path)
    model.eval()
    with torch.no_grad():
        rows = torch.tensor(X, dtype=torch.float32)
        first, second = (h.numpy() for h in model.hidden(rows))
        logits = model.c(torch.tensor(second)).numpy()
    np.testing.assert_allclose(
        wrapped.predict_proba(X), softmax(logits.astype(float), 1), atol=1e-6
    )
    codes = wrapped.codes(X)
    assert codes.layer_widths == (70, 5)
    np.testing.assert_array_equal(bits_of(codes)[0], first > 0)
    np.testing.assert_array_equal(bits_of(codes)[1], second > 0)
    assert wrapped.embed(X).dtype == np.float64
    np.testing.assert_allclose(wrapped.embed(X), second, atol=1e-6)
    assert wrapped.kind == "ReLU network (PyTorch), hidden layers of 70 and 5"
    assert (wrapped.classes, wrapped.named_classes) == (("0", "1", "2"), False)


@both
def test_an_ensemble(how, tmp_path, X):
    model = Ensemble()
    wrapped = _model(how, model, tmp_path)
    with torch.no_grad():
        rows = torch.tensor(X, dtype=torch.float32)
        proba = model(rows).numpy()
        layers = [torch.relu(m[0](rows)) for m in model.members]
        layers = [
            h for a, m in zip(layers, model.members, strict=True) for h in (a, torch.relu(m[2](a)))
        ]
    np.testing.assert_allclose(wrapped.predict_proba(X), proba, atol=1e-6)
    for got, want in zip(bits_of(wrapped.codes(X)), layers, strict=True):
        np.testing.assert_array_equal(got, want.numpy() > 0)
    last = np.concatenate([h.numpy() for h in layers[1::2]], axis=1)
    np.testing.assert_allclose(wrapped.embed(X), last, atol=1e-6)
    assert wrapped.kind == "Ensemble of 4 ReLU networks (PyTorch), 2 hidden layers of 6 each"


@both
def test_images_are_reshaped_from_their_columns(how, tmp_path):
    model = Conv()
    wrapped = _model(how, model, tmp_path, shape=(1, 8, 8))
    assert wrapped.n_features == 64
    X = np.random.default_rng(3).normal(size=(40, 64))
    model.eval()
    with torch.no_grad():
        images = torch.tensor(X, dtype=torch.float32).reshape(-1, 1, 8, 8)
        hidden = torch.relu(model.norm(model.conv(images))).flatten(1).numpy()
        proba = model(images).exp().numpy()
    np.testing.assert_array_equal(bits_of(wrapped.codes(X))[0], hidden > 0)
    np.testing.assert_allclose(wrapped.embed(X), hidden, atol=1e-6)
    np.testing.assert_allclose(wrapped.predict_proba(X), proba, atol=1e-6)


@both
@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_one_output_stands_for_two_classes(how, sigmoid, flat, tmp_path, X):
    layers = [nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)]
    layers += [nn.Sigmoid()] * sigmoid + [nn.Flatten(0)] * flat
    model = nn.Sequential(*layers)
    with torch.no_grad():
        rows = torch.tensor(X, dtype=torch.float32)
        p = expit(model[:3](rows).numpy()[:, 0].astype(float))
    wrapped = _model(how, model, tmp_path)
    np.testing.assert_allclose(wrapped.predict_proba(X), np.c_[1 - p, p], atol=1e-6)


@pytest.mark.parametrize("batch", [7, 400])
def test_a_fixed_batch_gives_the_same(batch, tmp_path, X):
    fixed = load(export(Mlp(), tmp_path / "a.pt2", batch=batch), name="a.pt2")
    free = load(export(Mlp(), tmp_path / "b.pt2"), name="b.pt2")
    np.testing.assert_allclose(fixed.predict_proba(X), free.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(fixed.codes(X).words, free.codes(X).words)
    np.testing.assert_allclose(fixed.embed(X), free.embed(X), atol=1e-6)


def test_a_batch_of_one_works_and_says_how_to_be_faster(tmp_path, X):
    path = export(Mlp(), tmp_path / "a.pt2", batch=1)
    with pytest.warns(InputWarning, match=r"Dim\.AUTO"):
        model = load(path, name="a.pt2")
    np.testing.assert_allclose(
        model.predict_proba(X[:9]), wrap_module(Mlp()).predict_proba(X[:9]), atol=1e-6
    )


def test_many_rows_are_streamed_in_blocks(tmp_path):
    X = np.random.default_rng(2).normal(size=(20_001, 4))
    model = load(export(Mlp(), tmp_path / "m.pt2"), name="m.pt2")
    whole = model.predict_proba(X)
    assert whole.shape == (20_001, 3)
    np.testing.assert_allclose(whole[-5:], model.predict_proba(X[-5:]), atol=1e-6)


def test_names_from_the_extra_files(tmp_path, X):
    extra = {"classes.json": ["cat", "dog", "<b>"], "feature_names.json": list("abcd")}
    model = load(export(Mlp(), tmp_path / "m.pt2", **extra), name="m.pt2")
    assert (model.classes, model.named_classes) == (("cat", "dog", "<b>"), True)
    frame = pd.DataFrame(X[:, ::-1], columns=list("dcba"))
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(X))


def test_wrong_names_are_reported(tmp_path):
    path = export(Mlp(), tmp_path / "m.pt2", **{"classes.json": ["a"]})
    with pytest.raises(InputError, match="names 1 classes but gives 3") as caught:
        load(path, name="m.pt2")
    assert caught.value.file == "m.pt2"


def test_a_module_keeps_its_own_mode_and_weights(X):
    model = Mlp().train()
    model.drop.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wrapped = wrap_module(model, classes=["a", "b", "c"], feature_names=list("wxyz"))
    assert (wrapped.predict_proba(X) == wrapped.predict_proba(X)).all()
    wrapped.codes(X)
    assert model.training
    assert model.norm.training
    assert not model.drop.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert (wrapped.classes, wrapped.feature_names) == (("a", "b", "c"), tuple("wxyz"))


def test_a_module_in_double_precision(X):
    model = Mlp().double()
    model.scale = model.scale.double()
    wrapped = wrap_module(model)
    with torch.no_grad():
        model.eval()
        want = torch.softmax(model(torch.tensor(X)), 1).numpy()
    np.testing.assert_allclose(wrapped.predict_proba(X), want, rtol=1e-12)


@pytest.mark.parametrize(
    "act",
    [
        lambda x: x.clamp(min=0), lambda x: torch.clamp_min(x, 0), lambda x: x.relu(),
        lambda x: F.relu(x, inplace=True), lambda x: F.threshold(x, 0, 0),
    ],
)  # fmt: skip
def test_relus_under_other_names_are_found(act, X):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)

        def forward(self, x):
            return self.b(act(self.a(x)))

    model = Net()
    with torch.no_grad():
        want = model.a(torch.tensor(X, dtype=torch.float32)).numpy() > 0
    np.testing.assert_array_equal(bits_of(wrap_module(model).codes(X))[0], want)


@pytest.mark.parametrize("act", [nn.Tanh(), nn.LeakyReLU(), nn.Hardtanh(0, 6), nn.GELU()])
def test_other_activations_give_no_codes(act):
    model = wrap_module(nn.Sequential(nn.Linear(4, 6), act, nn.Linear(6, 3)))
    assert not isinstance(model, HasCodes)
    assert model.kind == "PyTorch classifier"


def test_the_declared_output_wins(X):
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))
    twice = wrap_module(model, output="logit").predict_proba(X)
    np.testing.assert_allclose(twice, softmax(wrap_module(model).predict_proba(X), 1), atol=1e-6)
    with pytest.raises(InputError, match="unknown"):
        wrap_module(model, output="percent")


def test_what_a_module_cannot_take_is_an_input_error(X):
    with pytest.raises(InputError, match="cannot be found"):
        wrap_module(Conv())
    with pytest.raises(InputError, match="PyTorch cannot run"):
        wrap_module(Mlp(), n_features=9)
    with pytest.raises(InputError, match="takes 4 features"):
        wrap_module(Mlp()).predict_proba(X[:, :3])
    with pytest.raises(InputError, match="shape"):
        wrap_module(nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3))))


def test_bad_rows_are_located(X):
    model = wrap_module(Mlp())
    X[9, 1] = np.nan
    with pytest.raises(InputError, match="missing value") as caught:
        model.predict_proba(X)
    assert caught.value.row == 10
    X[9, 1] = 1e39
    with pytest.raises(InputError, match="not finite") as caught:
        model.predict_proba(X)
    assert caught.value.row == 10


def test_a_whole_number_input_takes_whole_numbers_only(tmp_path):
    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.table = nn.Embedding(5, 3)

        def forward(self, x):
            return self.table(x).sum(1)

    model = Lookup()
    rows = np.array([[0, 4], [2, 1], [3, 3]])
    program = torch.export.export(
        model, (torch.tensor(rows),), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    torch.export.save(program, tmp_path / "m.pt2")
    wrapped = load(tmp_path / "m.pt2", name="m.pt2")
    with torch.no_grad():
        want = torch.softmax(model(torch.tensor(rows)), 1).numpy()
    np.testing.assert_allclose(wrapped.predict_proba(rows), want, atol=1e-6)
    with pytest.raises(InputError, match="not whole"):
        wrapped.predict_proba(rows + 0.5)
    with pytest.raises(InputError, match="cannot run"):
        wrapped.predict_proba(rows + 100)
