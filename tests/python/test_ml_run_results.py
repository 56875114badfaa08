"""What ml_run computes and writes, checked against numpy where a second way to the same numbers exists."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from command_line import IDS, Program, listed
from mlb import HEADER_SIZE, Header, read_model

# One for each kind of layer and state: plain attention, everything at once, recurrent, sliding windows.
FEATURES = ["llama", "everything", "qwen35", "window_layers", "q4_f16"]
RUN_WAYS = [(1, 1), (1, 5), (2, 1), (2, 64), (3, 5), (3, 64)]  # threads and batch


def ids_of(header: Header, n: int) -> list[int]:
    """Ids all over the vocabulary."""
    return [(37 * i + 11) % header.vocab for i in range(n)]


def ids_for(model: Path, n: int) -> list[int]:
    return ids_of(Header.unpack(model.read_bytes()[:HEADER_SIZE]), n)


# ---------------------------------------------------------------- the same results however they are computed


@pytest.mark.parametrize("feature", FEATURES)
def test_threads_and_batch_change_nothing(run, feature):
    model = run.model(feature)
    ids = ids_for(model, 23)
    expected = run.logits(model, ids)
    generated = run("-m", model, "--ids", listed(ids), "-n", 6).ids
    assert np.isfinite(expected).all()
    assert len({row.tobytes() for row in expected}) == len(ids)
    for threads, batch in RUN_WAYS:
        ways = ("--threads", threads, "--batch", batch)
        assert run.logits(model, ids, *ways).tobytes() == expected.tobytes(), ways
        assert run("-m", model, "--ids", listed(ids), "-n", 6, *ways).ids == generated, ways


@pytest.mark.parametrize("feature", FEATURES)
def test_all_kernels_give_the_same_bits(run, feature):
    names = run("--isa", "list").out.split()
    if len(names) < 2:
        pytest.skip(f"this build has only {names}")
    model = run.model(feature)
    ids = ids_for(model, 23)
    expected = run.logits(model, ids, "--isa", "scalar")
    for name in names:
        assert run.logits(model, ids, "--isa", name).tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("feature", FEATURES)
def test_streamed_and_mapped_models_are_equal(run, feature):
    model = run.model(feature)
    ids = ids_for(model, 9)
    assert run.logits(model, ids, "--mmap").tobytes() == run.logits(model, ids).tobytes()


# ---------------------------------------------------------------- logits


def test_logits_file(run, tmp_path):
    path = tmp_path / "logits.npy"
    path.write_bytes(b"an older file")
    answer = run("-m", run.model(), "--ids", listed(IDS), "--logits", path)
    assert answer.code == 0
    assert answer.out == ""
    logits = np.load(path)
    assert logits.dtype == np.float32
    assert logits.shape == (len(IDS), 251)
    assert logits.flags.c_contiguous
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes()[:8] == b"\x93NUMPY\x01\x00"
    assert (path.stat().st_size - logits.nbytes) % 64 == 0


@pytest.mark.parametrize("feature", FEATURES)
def test_exact_logits_are_double_and_near(run, feature):
    model = run.model(feature)
    ids = ids_for(model, 12)
    logits, exact = run.logits(model, ids), run.logits(model, ids, "--exact")
    assert exact.dtype == np.float64
    assert exact.shape == logits.shape
    assert not np.array_equal(exact, exact.astype(np.float32))
    for row, exact_row in zip(logits, exact, strict=True):
        assert cosine(row, exact_row) > 0.99
    assert cosine(logits[0], exact[1]) < 0.9


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_logits_of_a_prefix_are_a_prefix(run):
    logits = run.logits(run.model(), IDS)
    assert run.logits(run.model(), IDS[:5]).tobytes() == logits[:5].tobytes()


@pytest.mark.parametrize("mode", ["--logits", "--imatrix"])
def test_output_files_that_cannot_be_written(run, tmp_path, mode):
    for path in (tmp_path, tmp_path / "no" / "folder"):
        answer = run("-m", run.model(), "--ids", listed(IDS), mode, path)
        assert answer.status == "ML_E_IO"
        assert str(path) in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("mode", ["--logits", "--imatrix"])
def test_full_disks_are_reported(run, mode):
    answer = run("-m", run.model(), "--ids", listed(IDS), mode, "/dev/full")
    assert answer.status == "ML_E_IO"
    assert "/dev/full: No space left on device" in answer.err
    assert Path("/dev/full").is_char_device()


def test_output_follows_symbolic_links(run, tmp_path):
    target, link = tmp_path / "target.npy", tmp_path / "link.npy"
    target.write_bytes(b"")
    link.symlink_to(target)
    assert run("-m", run.model(), "--ids", "1,2", "--logits", link).code == 0
    assert link.is_symlink()
    assert np.load(target).shape == (2, 251)


def test_a_failed_run_leaves_the_old_file(run, tmp_path):
    path = tmp_path / "logits.npy"
    path.write_bytes(b"an older file")
    assert run("-m", broken_model(run, tmp_path), "--ids", "1", "--logits", path).status == "ML_E_NUMERIC"
    assert path.read_bytes() == b"an older file"
    assert len(list(tmp_path.iterdir())) == 2


# ---------------------------------------------------------------- generation


@pytest.mark.parametrize("feature", FEATURES)
def test_greedy_ids_are_the_largest_logits(run, feature):
    model = run.model(feature)
    ids = ids_for(model, 7)
    generated = run("-m", model, "--ids", listed(ids), "-n", 12).ids
    assert len(generated) == 12
    logits = run.logits(model, ids + generated[:-1])
    assert generated == logits[len(ids) - 1 :].argmax(axis=1).tolist()


def test_number_of_ids(run):
    for n in (0, 1, 7):
        answer = run("-m", run.model(), "--ids", listed(IDS), "-n", n)
        assert len(answer.ids) == n
        assert answer.finish() == "length (-n reached)"
    assert len(run("-m", run.model(), "--ids", listed(IDS)).ids) == 128


def test_stop_ids(run, tmp_path):
    ids = run("-m", run.model(), "--ids", listed(IDS), "-n", 20).ids
    last = next(i for i in range(3, 20) if ids[i] not in ids[:i])
    stop = tmp_path / "stop.txt"
    stop.write_text(f"250\n{ids[last]}\n")
    for wish in (f"250,{ids[last]}", stop):
        answer = run("-m", run.model(), "--ids", listed(IDS), "-n", 20, "--stop-ids", wish)
        assert answer.ids == ids[:last]
        assert answer.finish() == "stop (a stop id came up)"
    answer = run("-m", run.model(), "--ids", listed(IDS), "--stop-ids", "3,251")
    assert answer.status == "ML_E_ARG"
    assert "--stop-ids, item 2: token id 251" in answer.err


def sample(run: Program, *options: str | int | float) -> list[int]:
    return run("-m", run.model(), "--ids", listed(IDS), "-n", 64, *options).ids


def test_seeds(run):
    seeds = [7, 8, 0, 2**32 + 7, 2**64 - 1]
    texts = [sample(run, "--temp", 1, "--seed", seed) for seed in seeds]
    assert [sample(run, "--temp", 1, "--seed", seed) for seed in seeds] == texts
    assert len({tuple(text) for text in texts}) == len(seeds)


def test_without_a_seed_each_run_is_different_and_can_be_repeated(run):
    command = ("-m", run.model(), "--ids", listed(IDS), "-n", 64, "--temp", 1)
    first, second = run(*command), run(*command)
    assert first.ids != second.ids
    seed = next(line.split()[1] for line in first.err.splitlines() if line.startswith("seed"))
    assert run(*command, "--seed", seed).ids == first.ids


class Pcg32:
    """The sampler's random numbers, written anew from the description in src/sample/rng.h."""

    MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 109, 2**64 - 1

    def __init__(self, seed: int) -> None:
        self.state = ((self.INCREMENT + seed) * self.MULTIPLIER + self.INCREMENT) & self.MASK

    def uniform(self) -> float:
        old = self.state
        self.state = (old * self.MULTIPLIER + self.INCREMENT) & self.MASK
        mixed = ((old >> 18 ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return ((mixed >> turn | mixed << (32 - turn)) & 0xFFFFFFFF) // 256 / 2**24


def expected_id(logits: np.ndarray, random: float, temp: float, top_k: int, top_p: float, min_p: float) -> int:
    """One draw, in the order of the documentation: temperature, top_k, top_p, min_p."""
    order = np.argsort(-logits.astype(np.float64), kind="stable")
    scaled = logits[order].astype(np.float64) / np.float64(np.float32(temp))
    weights = np.exp(scaled - scaled[0])
    if top_k:
        weights = weights[:top_k]
    if top_p:
        reached = np.cumsum(weights) / weights.sum() >= np.float32(top_p)
        weights = weights[: int(reached.argmax()) + 1]
    weights = weights[weights >= np.float32(min_p)]
    return int(order[np.searchsorted(np.cumsum(weights), random * weights.sum(), side="right")])


@pytest.mark.parametrize(
    ("temp", "top_k", "top_p", "min_p"),
    [(1, 0, 0, 0), (0.7, 0, 0, 0), (3, 5, 0, 0), (2, 0, 0.8, 0), (1.5, 0, 0, 0.2), (2.5, 40, 0.9, 0.05)],
)
def test_sampling_equals_a_second_implementation(run, temp, top_k, top_p, min_p):
    options = ("--temp", temp, "--top-k", top_k, "--top-p", top_p, "--min-p", min_p)
    for seed in (0, 7, 2**63 + 5):
        generated = sample(run, *options, "--seed", seed)
        logits = run.logits(run.model(), IDS + generated[:-1])[len(IDS) - 1 :]
        random = Pcg32(seed)
        assert generated == [expected_id(row, random.uniform(), temp, top_k, top_p, min_p) for row in logits]


def test_penalties(run):
    plain = run("-m", run.model(), "--ids", listed(IDS), "-n", 100).ids
    assert len(set(plain)) < 100
    for option in ("--presence-penalty", "--frequency-penalty"):
        ids = run("-m", run.model(), "--ids", listed(IDS), "-n", 100, option, 1e6).ids
        assert len(set(ids + IDS)) == 100 + len(IDS)
    assert run("-m", run.model(), "--ids", listed(IDS), "-n", 100, "--repetition-penalty", 1).ids == plain
    assert run("-m", run.model(), "--ids", listed(IDS), "-n", 100, "--repetition-penalty", 1.5).ids != plain


def test_options_without_effect_are_mentioned(run):
    for option, value in (("--top-k", 4), ("--top-p", 0.5), ("--min-p", 0.5), ("--seed", 3)):
        answer = run("-m", run.model(), "--ids", listed(IDS), "-n", 5, option, value)
        assert answer.ids == run("-m", run.model(), "--ids", listed(IDS), "-n", 5).ids
        assert "no effect at temperature 0" in answer.err


# ---------------------------------------------------------------- perplexity


def expected_surprises(
    run: Program, model: Path, ids: list[int], n_ctx: int, stride: int, *options: str
) -> list[float]:
    """-ln p of the ids that are scored, from the logits of each window."""
    surprises = []
    scored = 1
    for begin in range(0, len(ids), stride):
        end = min(begin + n_ctx, len(ids))
        logits = run.logits(model, ids[begin:end], *options).astype(np.float64)
        for target in range(max(scored, begin + 1), end):
            row = logits[target - 1 - begin]
            surprises.append(float(np.logaddexp.reduce(row) - row[ids[target]]))
        scored = max(scored, end)
        if end == len(ids):
            break
    return surprises


@pytest.mark.parametrize("feature", ["llama", "qwen35"])
@pytest.mark.parametrize(("n", "n_ctx", "stride"), [(20, 64, 64), (33, 16, 16), (40, 16, 5), (40, 16, 1), (17, 16, 16)])
def test_perplexity(run, feature, n, n_ctx, stride):
    model = run.model(feature)
    ids = ids_for(model, n)
    surprises = expected_surprises(run, model, ids, n_ctx, stride)
    answer = run("-m", model, "--ids", listed(ids), "--perplexity", "--ctx", n_ctx, "--stride", stride, "--json").json
    assert answer["scored_ids"] == len(surprises)
    assert math.isclose(answer["mean_nll"], sum(surprises) / len(surprises), rel_tol=1e-9)
    assert math.isclose(answer["perplexity"], math.exp(sum(surprises) / len(surprises)), rel_tol=1e-9)
    assert (answer["context"], answer["stride"]) == (n_ctx, stride)
    if stride < n_ctx:
        assert len(surprises) == n - 1


def test_perplexity_for_people_and_exactly(run):
    surprises = expected_surprises(run, run.model(), IDS, 256, 256, "--exact")
    answer = run("-m", run.model(), "--ids", listed(IDS), "--perplexity", "--exact")
    assert answer.code == 0
    lines = dict(line.rsplit(maxsplit=1) for line in answer.out.splitlines())
    assert math.isclose(float(lines["perplexity"]), math.exp(np.mean(surprises)), abs_tol=1e-6 * math.exp(9))
    assert lines["ids scored"] == str(len(IDS) - 1)


def test_perplexity_needs_something_to_score(run):
    assert run("-m", run.model(), "--ids", "1", "--perplexity").status == "ML_E_ARG"
    assert run("-m", run.model(), "--ids", "1,2,3", "--perplexity", "--ctx", 1).status == "ML_E_ARG"
    answer = run("-m", run.model(), "--ids", "1,2,3", "--perplexity", "--ctx", 4, "--stride", 5)
    assert answer.status == "ML_E_ARG"
    assert "--stride 5 is more than the context of 4" in answer.err


# ---------------------------------------------------------------- importance matrix


@pytest.mark.parametrize("feature", ["llama", "head_dim", "qwen35", "q4"])
def test_imatrix(run, tmp_path, feature):
    model = run.model(feature)
    header = Header.unpack(model.read_bytes()[:HEADER_SIZE])
    ids = ids_for(model, 30)
    path = tmp_path / "imatrix"
    for ctx, ways in ((256, ()), (256, ("--batch", 1, "--threads", 2)), (12, ())):
        path.unlink(missing_ok=True)
        answer = run("-m", model, "--ids", listed(ids), "--imatrix", path, "--ctx", ctx, *ways)
        assert answer.code == 0, answer.err
        assert answer.out == ""
        assert list(tmp_path.iterdir()) == [path]
        data = path.read_bytes()
        magic, version, n_layers, dim, hidden, _, layer_tokens, classifier_tokens = struct.unpack_from("<4s5I2Q", data)
        assert (magic, n_layers, dim, hidden) == (b"MLI1", header.n_layers, header.dim, header.hidden_dim)
        assert (layer_tokens, classifier_tokens) == (30, 30)
        sums = np.frombuffer(data, "<f8", offset=40 if version == 1 else 48)
        assert np.isfinite(sums).all()
        assert (sums >= 0).all()
        assert (sums > 0).any()
        if ctx == 256:  # the order of the positions is the same, so the sums are too
            assert data == run.folder.joinpath(f"{feature}.imatrix").read_bytes() if ways else True
            run.folder.joinpath(f"{feature}.imatrix").write_bytes(data)
        assert run("--check", path).out == f"{path}: importance matrix, good\n"


# ---------------------------------------------------------------- trace


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & (2**64 - 1)
    return value


def trace(run: Program, model: Path, ids: list[int], *options: str | int) -> list[list[str]]:
    answer = run("-m", model, "--ids", listed(ids), "--trace", *options)
    assert answer.code == 0, answer.err
    return sorted(line.split() for line in answer.out.splitlines())


@pytest.mark.parametrize("feature", FEATURES)
def test_trace_of_a_prompt_in_one_go_and_one_by_one(run, feature):
    model = run.model(feature)
    header = Header.unpack(model.read_bytes()[:HEADER_SIZE])
    ids = ids_for(model, 9)
    lines = trace(run, model, ids)
    assert {int(line[0]) for line in lines} == set(range(9))
    assert {int(line[1]) for line in lines} == set(range(-1, header.n_layers))
    assert len({tuple(line[:3]) for line in lines}) == len(lines)
    for threads, batch in RUN_WAYS:
        assert trace(run, model, ids, "--threads", threads, "--batch", batch) == lines
    assert trace(run, model, [*ids[:-1], ids[-1] ^ 1]) != lines


def test_trace_hashes_the_bytes_of_the_floats(run):
    logits = run.logits(run.model(), IDS)
    hashes = {
        int(p): value for p, _, stage, n, value in trace(run, run.model(), IDS) if stage == "logits" and n == "251"
    }
    assert hashes == {p: f"{fnv1a(row.tobytes()):016x}" for p, row in enumerate(logits)}


def broken_model(run: Program, folder: Path) -> Path:
    """A model with a NaN among its norm weights: it loads, and cannot be used."""
    data = bytearray(run.model().read_bytes())
    span = next(iter(read_model(run.model()).spans_of("final_norm")))
    data[span.offset + 8 : span.offset + 12] = struct.pack("<f", math.nan)
    path = folder / "broken.mlb"
    path.write_bytes(data)
    return path


def test_what_is_not_a_number_is_never_hashed_or_sampled(run, tmp_path):
    model = broken_model(run, tmp_path)
    answer = run("-m", model, "--ids", "1,2,3", "--trace")
    assert answer.code == 1
    assert "ML_E_NUMERIC: value 2 of stage final, layer -1, position 0 is not a number" in answer.err
    assert not [line for line in answer.out.splitlines() if line.split()[2] in ("final", "logits")]
    assert run("-m", model, "--ids", "1,2,3").status == "ML_E_NUMERIC"
    assert run("-m", model, "--ids", "1,2,3", "--perplexity").status == "ML_E_NUMERIC"
    assert run("-m", model, "--info", "--json").json["non_finite_weights"] == 1
    assert run("--check", model).code == 0


# ---------------------------------------------------------------- info, check, bench


@pytest.mark.parametrize("feature", FEATURES)
def test_info(run, feature):
    model = run.model(feature)
    data = model.read_bytes()
    header = Header.unpack(data[:HEADER_SIZE])
    info = run("-m", model, "--info", "--json").json
    for key in ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab", "max_seq", "sliding_window"):
        assert info[key] == getattr(header, key), key
    assert info["head_dim"] == header.head_size
    assert info["weight_type"].startswith(("Q8_0", "Q4_0"))
    assert info["model"] == str(model)
    assert 0 <= len(data) - info["file_bytes"] < 64
    assert info["trailing_bytes"] == 0
    assert info["non_finite_weights"] == 0
    assert info["context"] == min(header.max_seq, 4096)
    parameters = sum(spec.rows * spec.cols for spec in read_model(model).tensors())
    assert info["parameters"] == parameters
    people = run("-m", model, "--info")
    assert people.code == 0
    assert len(people.out.splitlines()) == len(info)


def test_info_tells_what_a_session_would_need(run):
    def needed(*options: str | int) -> int:
        return run("-m", run.model("long_context"), "--info", "--json", *options).json["session_bytes"]

    assert needed("--ctx", 128) < needed("--ctx", 256) < needed("--ctx", 100000)
    assert needed("--ctx", 256, "--batch", 1) < needed("--ctx", 256, "--batch", 256)
    assert needed("--ctx", 16777216) > 1 << 30  # planned, not taken
    assert run("-m", run.model(), "--info", "--ctx", 1000).status == "ML_E_CONTEXT"
    assert run("-m", run.model(), "--info", "--isa", "none").status == "ML_E_ARG"


def test_info_counts_what_follows_the_model(run, tmp_path):
    path = tmp_path / "longer.mlb"
    data = run.model().read_bytes()
    path.write_bytes(data + bytes(-len(data) % 64) + b"x" * 100)
    for options in ([], ["--mmap"]):
        assert run("-m", path, "--info", "--json", *options).json["trailing_bytes"] == 100


@pytest.mark.parametrize("options", [[], ["--mmap"]])
def test_check(run, tmp_path, options):
    model = run.model()
    assert run("--check", model, *options).out == f"{model}: model, good\n"
    path = tmp_path / "file"
    cases = {
        b"": "256",
        b"ML": "256",
        b"MLB1": "256",
        b"GGUF" + bytes(500): "magic",
        b"MLI1" + bytes(500): "ML_E_FORMAT",
        b"MLT1" + bytes(500): "ML_E_FORMAT",
        bytes.fromhex("544c4c50") + bytes(500): "ML_E_FORMAT",
    }
    for data, word in cases.items():
        path.write_bytes(data)
        answer = run("--check", path, *options)
        assert answer.status == "ML_E_FORMAT", data[:4]
        assert word in answer.err
        assert str(path) in answer.err
        assert answer.out == ""
    assert run("--check", tmp_path / "none", *options).status == "ML_E_IO"
    assert run("--check", tmp_path, *options).status == "ML_E_IO"


def test_bench(run):
    result = run("-m", run.model(), "--bench", "--json", "--repeat", 3).json
    assert result["repetitions"] == 3
    assert result["threads"] == 1
    assert result["isa"] == run("--isa", "list").out.split()[0]
    assert (result["prompt_ids"], result["generated_ids"]) == (128, 64)
    for phase in ("prompt", "generated"):
        values = [result[f"{phase}_per_second{suffix}"] for suffix in ("_min", "", "_max")]
        assert values == sorted(values)
        assert values[0] > 0
    assert result["generated_gigabytes_per_second"] > 0


def test_bench_does_what_it_is_told(run):
    result = run("-m", run.model(), "--bench", "--json", "--ids", "1,2,3", "-n", 5, "--threads", 2, "--repeat", 2).json
    assert (result["prompt_ids"], result["generated_ids"], result["threads"]) == (3, 5, 2)
    small = run("-m", run.model(), "--bench", "--json", "--ctx", 9, "--repeat", 1).json
    assert small["prompt_ids"] + small["generated_ids"] == 9
    assert run("-m", run.model(), "--bench", "-n", 5, "--ctx", 3).status == "ML_E_CONTEXT"
    people = run("-m", run.model(), "--bench", "--repeat", 1)
    assert people.code == 0
    assert "kernels" in people.out
