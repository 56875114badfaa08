"""Training of small models on stories: the Llama is transformers', batches lose nothing, a stopped run goes on as if it
had not been stopped, and what comes out is a package."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pack_tiny
import pytest
import torch
import train_tiny
from make_stories import write_files
from muon import orthogonalized
from story_tokens import BOS, END, EOS, START, batches, encode, in_order, read_stories, train_tokenizer
from tiny_llama import LlamaShape, TinyLlama, save_checkpoint
from transformers import AutoModelForCausalLM

SMALL = LlamaShape(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=320)
RECIPE = train_tiny.Recipe(steps=30, batch_tokens=2048, longest=1000, vocab=320, warmup=4)


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    write_files(folder, seed=6, count=120)
    return folder


@pytest.fixture(autouse=True)
def small_models(monkeypatch):
    def small(**header):
        return train_tiny_header(**header | {"dim": 32, "n_heads": 2, "ffn_dim": 64, "embed_factor_dim": 32})

    train_tiny_header = train_tiny.Header
    monkeypatch.setattr(train_tiny, "LlamaShape", partial(replace, SMALL))
    monkeypatch.setattr(train_tiny, "Header", small)
    torch.set_num_threads(1)


def test_llama_is_that_of_transformers(tmp_path):
    model = TinyLlama(SMALL, seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    save_checkpoint(model, tmp_path, {"temperature": 0.8})
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.randint(0, SMALL.vocab_size, (2, 40), generator=generator)
    with torch.no_grad():
        ours, other = model(ids), theirs(ids).logits
        assert (ours - other).abs().max() < 1e-4
        assert ours.std() > 0.5
        model.model.layers[1].self_attn.k_proj.weight.mul_(1.01)
        assert (model(ids) - other).abs().max() > 1e-3


def test_muon_makes_singular_values_equal():
    stack = torch.randn(3, 24, 40, generator=torch.Generator().manual_seed(1))
    for matrices in (stack, stack.mT.contiguous()):
        values = torch.linalg.svdvals(orthogonalized(matrices))
        assert values.min() > 0.5 and values.max() < 1.4
        u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
        cosine = torch.nn.functional.cosine_similarity(orthogonalized(matrices).flatten(1), (u @ vh).flatten(1))
        assert cosine.min() > 0.95


def test_tokenizer_and_batches(stories):
    texts = read_stories(stories / "train.txt")
    tokenizer = train_tokenizer(texts, 320)
    assert [tokenizer.token_to_id(text) for text in (START, END)] == [BOS, EOS]
    encoded = encode(tokenizer, texts, 2000)
    assert all(ids[0] == BOS and ids[-1] == EOS for ids in encoded)
    assert [tokenizer.decode(ids.tolist(), skip_special_tokens=True) for ids in encoded] == texts
    middle = sorted(map(len, encoded))[len(encoded) // 2]
    assert 0 < len(encode(tokenizer, texts, middle)) < len(texts)

    def rows(made):
        return sorted(tuple(row[row >= 0]) for batch in made for row in batch)

    once = list(in_order(encoded, 2048))
    assert rows(once) == sorted(map(tuple, encoded))
    assert all(batch.size <= 2048 for batch in once)
    source = batches(encoded, 2048, seed=1)
    epoch = [next(source) for _ in once]
    assert rows(epoch) == rows(once)
    again = batches(encoded, 2048, seed=1)
    assert all(np.array_equal(batch, next(again)) for batch in epoch)


def test_rare_ids_that_come_again_count_more():
    rare = torch.arange(10) != 6
    batch = torch.tensor([[0, 5, 6, 5, 6, 5, 7, -1], [0, 7, 8, 9, 9, -1, -1, -1]])
    assert train_tiny.weights_of(batch, rare, 3.0).tolist() == [1, 1, 3, 1, 3, 1, 0, 1, 1, 1, 3, 0, 0, 0]
    assert train_tiny.weights_of(batch, rare, 1.0).tolist() == [1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0]


def test_what_is_right_again_is_counted():
    """A model that says what follows in the first story, whatever it is given."""
    stories = [np.array([0, 5, 6, 5, 6, 5, 7]), np.array([0, 7, 8, 8, 8, 8, 8])]
    rare = torch.arange(10) != 6

    def model(ids):
        after = torch.tensor(stories[0][1:])
        return torch.nn.functional.one_hot(after, 10).float().expand(len(ids), -1, -1)

    assert train_tiny.repeats_right(model, stories[:1], rare) == 1.0
    assert train_tiny.repeats_right(model, stories[1:], rare) == 0.0
    assert train_tiny.repeats_right(model, stories, rare) == 2 / 6
    often = [np.array([3] * 990 + [4] * 10)]
    assert train_tiny.rare_ids(often, 6).tolist() == [True, True, True, False, False, True]
    assert train_tiny.rare_ids([*often, np.array([3])], 6)[4]


@pytest.mark.parametrize("kind", train_tiny.RECIPES)
def test_attention_begins_as_a_copy(kind):
    """Looking at one position only, attention gives that position's input, projected."""
    model = train_tiny.new_model(replace(RECIPE, kind=kind))
    if kind == "stories":
        attention = model.model.layers[1].self_attn
        v, o = attention.v_proj.weight, attention.o_proj.weight
        v = v.view(2, 8, 32).repeat_interleave(2, dim=0).reshape(32, 32)  # two query heads share each
    else:
        v, o = model.blocks[1].wv, model.blocks[1].wo
    through = (o @ v).detach()
    values = torch.linalg.eigvalsh((through + through.T) / 2)
    n = 16 if kind == "stories" else 32
    assert torch.allclose(through, through.T, atol=1e-5)
    assert torch.allclose(values[-n:], torch.ones(n), atol=1e-5)
    assert torch.allclose(values[:-n], torch.zeros(32 - n), atol=1e-5)


@pytest.mark.parametrize("kind", train_tiny.RECIPES)
def test_run_is_resumed_learns_and_becomes_a_package(kind, stories, tmp_path, monkeypatch):
    recipe = replace(RECIPE, kind=kind, quantized_from=0.5)

    def run(folder, steps=30, stop=None):
        training = train_tiny.Training(replace(recipe, steps=steps), stories, tmp_path / folder)
        training.resume()
        if stop:
            monkeypatch.setattr(training, "save", lambda *name: None if name else type(training).save(training))
            step = training.one_step

            def one_step(batch):
                if training.step == stop:
                    training.save()
                    raise KeyboardInterrupt
                return step(batch)

            monkeypatch.setattr(training, "one_step", one_step)
        training.run(report_every=10, evaluate_every=15)
        return training

    straight = run("straight")
    with pytest.raises(KeyboardInterrupt):
        run("stopped", stop=17)
    resumed = run("stopped")
    assert resumed.step == straight.step == 30
    theirs = straight.model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in resumed.model.state_dict().items())

    rows = [json.loads(line) for line in (tmp_path / "straight/log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 20, 30]
    assert rows[-1]["loss"] < 0.9 * rows[0]["loss"]
    assert rows[-1]["held_out"] < 5

    with pytest.raises(SystemExit, match="another recipe"):
        train_tiny.Training(replace(recipe, seed=2), stories, tmp_path / "straight").resume()

    out = tmp_path / "package"
    assert pack_tiny.main([str(tmp_path / "straight"), str(out)]) == 0
    document = json.loads((out / "model.json").read_text())
    assert document["stopTokens"] == [{"id": EOS, "text": END}]
    assert document["license"] == "cc0-1.0"
    names = {"stories": "model.mlb", "stories-loop": "model.tinyloop"}
    assert document["files"]["model"]["name"] == names[kind]
    assert document["files"]["model"]["size"] == (out / names[kind]).stat().st_size
    assert (out / "loss.svg").read_text().startswith("<svg")
    assert pack_tiny.main([str(tmp_path / "nowhere"), str(out)]) == 1
