"""Quantization against scalar transcriptions of the format document, llama.cpp's own rounding, and hand-made blocks."""

import gguf
import numpy as np
import pytest
import quant
from quant import (
    BLOCK,
    Quantized,
    QuantizeError,
    fit_error,
    importance_factors,
    pack_nibbles,
    quantize_q4_0_fit,
    quantize_q4_0_round,
    quantize_q8_0,
    unpack_nibbles,
)

F32 = np.float32


def block(*values: float) -> np.ndarray:
    """One row of one block: the values, then zeros."""
    row = np.zeros((1, BLOCK), dtype=F32)
    row[0, : len(values)] = values
    return row


def distributions(rows: int, cols: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Matrices of several kinds. float32, rows x cols."""
    rng = np.random.default_rng(seed)
    shape = (rows, cols)
    normal = rng.standard_normal(shape)
    sparse = normal * (rng.random(shape) < 0.1)
    magnitudes = 10.0 ** rng.uniform(-37, 37, (rows, 1))
    kinds = {
        "normal": normal,
        "uniform": rng.uniform(-1, 1, shape),
        "heavy": rng.standard_t(2, shape),
        "one-sided": np.abs(normal),
        "sparse": sparse,
        "integers": rng.integers(-8, 9, shape),
        "halves": rng.integers(-20, 21, shape) / 2,
        "outlier": np.where(rng.random(shape) < 1 / BLOCK, 50 * normal, normal),
        "tiny": normal * 1e-8,
        "any magnitude": normal * magnitudes,
        "constant": np.ones(shape) * rng.standard_normal((rows, 1)),
    }
    return {name: values.astype(F32) for name, values in kinds.items()}


# ---------------------------------------------------------------- Q8_0


def scalar_q8_0(row: np.ndarray, scale_f16: bool) -> tuple[list[int], np.float32]:
    """One block, one float32 operation at a time, as the format document words it."""
    amax = F32(0)
    for x in row:
        amax = max(amax, abs(x))
    if amax < F32(1e-30):
        return [0] * BLOCK, F32(0)
    d = amax / F32(127)
    factor = F32(127) / amax
    if scale_f16:
        d = F32(np.float16(d))
        if d == 0:
            return [0] * BLOCK, d
        factor = F32(1) / d
    quants = []
    for x in row:
        shifted = F32(x * factor) + F32(np.copysign(F32(0.5), x))
        quants.append(max(-127, min(127, int(shifted))))
    return quants, d


def assert_is_scalar_q8_0(x: np.ndarray, got: Quantized, scale_f16: bool) -> None:
    for i, row in enumerate(x.reshape(-1, BLOCK)):
        quants, d = scalar_q8_0(row, scale_f16)
        assert got.q.reshape(-1, BLOCK)[i].tolist() == quants, f"quants of block {i}"
        assert got.d.reshape(-1)[i].tobytes() == d.tobytes(), f"scale of block {i}"


@pytest.mark.parametrize("scale_f16", [False, True])
def test_q8_0_is_the_scalar_rule(scale_f16: bool):
    for name, x in distributions(8, 96).items():
        if scale_f16 and name == "any magnitude":
            x = np.clip(x, -8e6, 8e6)
        assert_is_scalar_q8_0(x, quantize_q8_0(x, scale_f16), scale_f16)


def test_the_q8_0_comparison_can_fail():
    x = distributions(2, 64)["normal"]
    good = quantize_q8_0(x)
    for q, d in ((good.q * 0, good.d), (good.q, good.d * 0), (good.q, np.nextafter(good.d, F32(9)))):
        with pytest.raises(AssertionError):
            assert_is_scalar_q8_0(x, Quantized(q, d, "q8_0"), False)
    one_off = good.q.copy()
    one_off[1, 40] += 1
    with pytest.raises(AssertionError):
        assert_is_scalar_q8_0(x, Quantized(one_off, good.d, "q8_0"), False)


@pytest.mark.parametrize("scale_f16", [False, True])
def test_q8_0_rounds_halves_away_from_zero(scale_f16: bool):
    got = quantize_q8_0(block(127.0, 0.5, 1.5, 2.5, -0.5, -2.5), scale_f16)
    assert got.d.tolist() == [[1.0]]
    assert got.q[0, :7].tolist() == [127, 1, 2, 3, -1, -3, 0]


def test_q8_0_threshold_is_compared_in_float32():
    limit = F32(1e-30)
    below = np.nextafter(limit, F32(0))
    assert quantize_q8_0(block(limit)).q[0, 0] == 127
    assert quantize_q8_0(block(below)).q[0, 0] == 0
    assert quantize_q8_0(block(below)).d[0, 0] == 0


def test_q8_0_f16_scale_that_rounds_to_zero():
    smallest = 2.0**-24  # the smallest float16; half of it rounds to 0 (ties to even)
    assert quantize_q8_0(block(127 * smallest), True).d[0, 0] == F32(smallest)
    got = quantize_q8_0(block(127 * smallest / 2), True)
    assert got.d[0, 0] == 0
    assert not got.q.any()


def test_q8_0_clamps_against_a_scale_that_was_rounded_down():
    amax = F32(127 * 1.4 * 2.0**-24)  # scale 1.4 steps of float16, stored as one
    assert quantize_q8_0(block(amax, -amax), True).q[0, :2].tolist() == [127, -127]


def test_large_weights():
    weight = F32(99840.0)  # 1e5 in bfloat16
    assert abs(quantize_q8_0(block(weight)).dequantize()[0, 0] / weight - 1) < 0.01
    assert abs(quantize_q8_0(block(weight), True).dequantize()[0, 0] / weight - 1) < 0.01
    assert quantize_q8_0(block(65504 * 127), True).d[0, 0] == 65504
    rows = np.concatenate([block(1), block(1e7)])
    assert np.isfinite(quantize_q8_0(rows).d).all()
    with pytest.raises(QuantizeError, match=r"scale 78740\.2 in row 1, block 0 is above 65504"):
        quantize_q8_0(rows, True)


# ---------------------------------------------------------------- packing


def test_nibbles():
    levels = np.array([-8, 7] + [0] * 14 + [1, -1] + [0] * 14, dtype=np.int8)  # elements 0, 1 and 16, 17
    packed = pack_nibbles(levels)
    assert packed[:3].tolist() == [0x90, 0x7F, 0x88]
    assert unpack_nibbles(packed).tolist() == levels.tolist()
    every = np.arange(256, dtype=np.uint8)
    assert pack_nibbles(unpack_nibbles(every)).tolist() == every.tolist()


# ---------------------------------------------------------------- Q4_0 as llama.cpp rounds it


def test_round_by_hand():
    for values, d, codes in (
        ((8, -8, 4, 0.5), -1.0, [0, 15, 4, 8]),
        ((-8, 8, 4, 0.5), 1.0, [0, 15, 12, 9]),  # 9: the half goes up
        ((), 0.0, [8, 8, 8, 8]),
    ):
        got = quantize_q4_0_round(block(*values))
        assert got.d[0, 0] == d
        assert (got.q[0, :4] + 8).tolist() == codes
        assert (got.q[0, 4:] == 0).all()


def gguf_q4_0(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The published package's Q4_0: scales as float16 bits, and packed nibbles."""
    stored = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q4_0).reshape(-1, 18)
    return stored[:, :2].copy().view(np.uint16).reshape(-1), stored[:, 2:]


def count_unlike_gguf(x: np.ndarray, got: Quantized) -> tuple[int, int]:
    """(blocks compared, blocks whose stored bytes differ). Left out: scales that gguf turns into infinities, and
    those whose inverse overflows, for which the rule says nothing."""
    with np.errstate(all="ignore"):
        scales, nibbles = gguf_q4_0(x)
        extreme = np.abs(x.reshape(-1, BLOCK)).max(axis=1)
        defined = np.isfinite(F32(8) / extreme) | (extreme == 0)
    defined &= (scales & 0x7FFF) < 0x7C00
    same_scale = got.d.astype(np.float16).view(np.uint16).reshape(-1) == scales
    same_levels = (pack_nibbles(got.q).reshape(-1, 16) == nibbles).all(axis=1)
    return int(defined.sum()), int((defined & ~(same_scale & same_levels)).sum())


def test_round_is_llama_cpp_rounding():
    compared = 0
    for name, x in distributions(1024, 512, seed=3).items():
        x = np.clip(x, -8 * 65504, 8 * 65504)
        n, different = count_unlike_gguf(x, quantize_q4_0_round(x, True))
        assert different == 0, name
        assert n > 1000, name
        compared += n
    assert compared >= 100_000


def test_round_is_llama_cpp_rounding_at_the_edges():
    largest, normal = 8 * 65504.0, 2.0**-126
    edges = [0.0, -0.0, 1e-45, -1e-38, normal, -normal, 2.0**-21, 2.0**-22, 8 * 2.0**-25, 1e-6, -1.0, largest, -largest]
    rng = np.random.default_rng(5)
    rows = [block(edge, -edge, edge / 2, -edge / 16, edge * 0.9) for edge in edges]
    rows += [np.roll(row, 7, axis=1) for row in rows]  # the first of two extremes decides
    rows += [(rng.integers(-16, 17, (1, BLOCK)) * F32(edge / 16)).astype(F32) for edge in edges for _ in range(50)]
    x = np.concatenate(rows)
    n, different = count_unlike_gguf(x, quantize_q4_0_round(x, True))
    assert different == 0
    assert n > 500


def test_the_gguf_comparison_can_fail():
    x = distributions(4, 64)["normal"]
    good = quantize_q4_0_round(x, True)
    assert count_unlike_gguf(x, good) == (8, 0)
    assert count_unlike_gguf(x, Quantized(good.q * 0, good.d, "q4_0"))[1] == 8
    assert count_unlike_gguf(x, Quantized(good.q, good.d * 0, "q4_0"))[1] == 8
    one_off = good.q.copy()
    one_off[2, 5] ^= 1
    assert count_unlike_gguf(x, Quantized(one_off, good.d, "q4_0")) == (8, 1)
    assert count_unlike_gguf(x, quantize_q4_0_fit(x, True))[1] > 0  # the other rule is another rule


def test_round_takes_levels_from_the_scale_before_it_is_rounded():
    x = block(-8.003, 3.5011)  # d 1.000375 is stored as 1.0; 3.5011 / 1.000375 < 3.5 < 3.5011 / 1.0
    got = quantize_q4_0_round(x, True)
    assert got.d[0, 0] == 1.0
    assert got.q[0, 1] == 3


def test_round_of_blocks_too_small_to_divide():
    got = quantize_q4_0_round(block(1e-45, 3e-45))
    assert not got.dequantize().any()


# ---------------------------------------------------------------- Q4_0 by search


def scalar_fit_error(row: np.ndarray, weights: list[float]) -> float:
    """The smallest weighted error that the described search can reach for one block, in plain Python floats."""
    values = [float(x) for x in row]
    extreme = max(values, key=abs)
    if extreme == 0:
        return 0.0
    errors = []
    for step in range(13):
        factor = (-6.0 - 0.2 * step) / extreme
        levels = [min(7, max(-8, round(x * factor))) for x in values]
        square = sum(w * q * q for w, q in zip(weights, levels, strict=True))
        d = sum(w * x * q for w, x, q in zip(weights, values, levels, strict=True)) / square
        errors.append(sum(w * (x - d * q) ** 2 for w, x, q in zip(weights, values, levels, strict=True)))
    return min(errors)


def assert_fits_like(errors: np.ndarray, expected: np.ndarray, scale: np.ndarray) -> None:
    """Equal but for the rounding of d to float32, which costs up to 2^-24 of it: errors move by less than 1e-13 of
    the block's weighted squares, beside which 1e-6 of the error itself is allowed."""
    assert errors.shape == expected.shape
    assert errors.size > 0
    assert (np.abs(errors - expected) <= 1e-6 * expected + 1e-13 * scale).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_the_described_search(weighted: bool):
    importance = np.random.default_rng(2).random(96) ** 4 if weighted else None
    for x in distributions(6, 96, seed=4).values():
        if np.abs(x).max() > 1e18 or 0 < np.abs(x).min() < 1e-18:
            continue  # plain Python squares would leave the range in which errors can be compared
        weights = weights_of(x, importance)
        blocks = zip(x.reshape(-1, BLOCK), weights.reshape(-1, BLOCK), strict=True)
        expected = np.array([scalar_fit_error(row, list(w)) for row, w in blocks]).reshape(6, 3)
        scale = (weights * x.astype(np.float64) ** 2).reshape(6, 3, BLOCK).sum(axis=2)
        got = quantize_q4_0_fit(x, importance=importance)
        assert_fits_like(fit_error(x, got, importance), expected, scale)


def test_the_fit_comparison_can_fail():
    x = distributions(4, 64)["normal"]
    scale = (x.astype(np.float64) ** 4).reshape(4, 2, BLOCK).sum(axis=2)
    good = quantize_q4_0_fit(x)
    expected = fit_error(x, good)
    assert_fits_like(expected, expected, scale)
    one_off = good.q.copy()
    one_off[1, 40] += 1 if one_off[1, 40] < 7 else -1
    for q, d in ((good.q * 0, good.d), (good.q, good.d * 0), (one_off, good.d), (good.q, good.d * F32(1.01))):
        with pytest.raises(AssertionError):
            assert_fits_like(fit_error(x, Quantized(q, d, "q4_0")), expected, scale)


def weights_of(x: np.ndarray, importance: np.ndarray | None) -> np.ndarray:
    """What each element weighs: x², or imp * sqrt(s² + x²). float64, of x's shape."""
    squares = x.astype(np.float64) ** 2
    if importance is None:
        return squares
    return importance_factors(importance, x.shape[1]) * np.sqrt(squares.mean(axis=1, keepdims=True) + squares)


def assert_never_worse(
    x: np.ndarray, fit: Quantized, other: Quantized, scale_f16: bool, importance: np.ndarray | None = None
) -> int:
    """Compares by the fit's own measure; gives the number of blocks.

    At the least-squares d, storing d with half a step of error costs at most (step / 2)² * sum of w q²: that much is
    allowed, and nothing else but float64 noise. Where d was stored as 0, the levels are gone and stand as 8.
    """
    levels = np.where(np.repeat(fit.d == 0, BLOCK, axis=1), 8.0, fit.q)
    leverage = (weights_of(x, importance) * levels**2).reshape(len(x), -1, BLOCK).sum(axis=2)
    step = np.spacing(np.abs(fit.d).astype(np.float16 if scale_f16 else np.float32)).astype(np.float64)
    mine, others = fit_error(x, fit, importance), fit_error(x, other, importance)
    worse = mine > others * (1 + 1e-9) + (step / 2) ** 2 * leverage
    assert not worse.any(), f"{worse.sum()} of {worse.size} blocks"
    return mine.size


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale_f16", [False, True])
def test_fit_is_never_worse_than_rounding(scale_f16: bool, weighted: bool):
    importance = np.random.default_rng(6).random(256) ** 4 if weighted else None
    compared = 0
    for name, x in distributions(256, 256, seed=7).items():
        if scale_f16:
            x = np.clip(x, -3e5, 3e5)
        fit, other = quantize_q4_0_fit(x, scale_f16, importance), quantize_q4_0_round(x, scale_f16)
        compared += assert_never_worse(x, fit, other, scale_f16, importance)
        if name == "normal":  # and where there is room, it is better
            assert fit_error(x, fit, importance).sum() < 0.95 * fit_error(x, other, importance).sum()
    assert compared >= 20_000


def test_never_worse_can_fail():
    x = distributions(4, 64)["normal"]
    fit, other = quantize_q4_0_fit(x), quantize_q4_0_round(x)
    assert assert_never_worse(x, fit, other, False) == 8
    one_off = fit.q.copy()
    one_off[1, 40] = -one_off[1, 40] + (one_off[1, 40] == 0)
    for q, d in ((fit.q * 0, fit.d), (fit.q, fit.d * 0), (fit.q, fit.d * F32(1.2)), (one_off, fit.d)):
        with pytest.raises(AssertionError):
            assert_never_worse(x, Quantized(q, d, "q4_0"), fit, False)
    with pytest.raises(AssertionError):
        assert_never_worse(x, other, fit, False)


def test_fit_finds_what_is_exactly_there():
    rng = np.random.default_rng(8)
    levels = rng.integers(-7, 8, (200, BLOCK))
    levels[:, 3] = -8
    d = F32(2.0) ** rng.integers(-10, 10, (200, 1))
    x = (levels * d).astype(F32)
    for scale_f16 in (False, True):
        assert (quantize_q4_0_fit(x, scale_f16).dequantize() == x).all()
        got = quantize_q4_0_fit(-x, scale_f16)
        assert (got.dequantize() == -x).all()
        assert (got.d < 0).all()


def test_fit_of_tiny_blocks_keeps_their_levels():
    x = distributions(16, 64)["normal"]
    for power in (-40, -90, -120):
        small = x * F32(2.0**power)
        errors = fit_error(small, quantize_q4_0_fit(small)) / 2.0 ** (4 * power)
        expected = fit_error(x, quantize_q4_0_fit(x))
        assert_fits_like(errors, expected, (x.astype(np.float64) ** 4).reshape(16, 2, BLOCK).sum(axis=2))


def test_fit_of_zeros_and_of_scales_that_round_to_zero():
    for x, scale_f16 in ((block(), False), (block(), True), (block(1e-9, -5e-10), True), (block(1e-45), False)):
        got = quantize_q4_0_fit(x, scale_f16)
        assert not got.q.any()
        assert not got.d.any()


def test_fit_refuses_scales_over_float16():
    assert quantize_q4_0_fit(block(65504.0 * 6), True).d[0, 0] == -65504  # a lone element goes to level -6, the first
    with pytest.raises(QuantizeError, match=r"scale .* in row 0, block 0 is above 65504"):
        quantize_q4_0_fit(block(65504.0 * 8.01), True)
    with pytest.raises(QuantizeError, match=r"scale .* is above 65504"):
        quantize_q4_0_round(block(65504.0 * 9), True)
    assert np.isfinite(quantize_q4_0_fit(block(3e38, -1e38)).d).all()


# ---------------------------------------------------------------- importance


def test_importance_factors():
    got = importance_factors(np.array([1.0, 3.0, 0.0, 4.0]), 4)
    assert got.tolist() == [0.5, 1.5, 0.001, 2.0]
    assert importance_factors(np.zeros(3), 3).tolist() == [1, 1, 1]
    for bad, text in ((np.ones(3), "shape"), (np.array([1, -1.0]), "negative"), (np.array([1, np.inf]), "non-finite")):
        with pytest.raises(QuantizeError, match=text):
            importance_factors(bad, 2)


def test_importance_moves_error_to_channels_that_matter_less():
    x = distributions(64, 64)["normal"]
    importance = np.ones(64)
    importance[::4] = 100.0
    plain, led = (quantize_q4_0_fit(x, importance=i).dequantize() for i in (np.ones(64), importance))
    assert ((led - x)[:, ::4] ** 2).sum() < 0.8 * ((plain - x)[:, ::4] ** 2).sum()
    again = quantize_q4_0_fit(x, importance=importance * 2.0**20).dequantize()
    assert (again == led).all()  # only proportions count


# ---------------------------------------------------------------- all rules


RULES = {
    "q8_0": quantize_q8_0,
    "q4_0 fit": quantize_q4_0_fit,
    "q4_0 round": quantize_q4_0_round,
    "q4_0 importance": lambda x, f16=False: quantize_q4_0_fit(x, f16, np.arange(x.shape[-1]) + 1.0),
}


@pytest.mark.parametrize("rule", RULES)
def test_chunks_leave_no_trace(rule: str, monkeypatch):
    x = distributions(37, 96)["heavy"]
    whole = RULES[rule](x)
    monkeypatch.setattr(quant, "_CHUNK_BLOCKS", 5)  # not a divisor of anything here
    parts = RULES[rule](x)
    assert (whole.q == parts.q).all()
    assert whole.d.tobytes() == parts.d.tobytes()
    assert (whole.q[5] == RULES[rule](x[5:6]).q[0]).all()


@pytest.mark.parametrize("rule", RULES)
def test_input_types_and_layouts(rule: str):
    x = distributions(8, 64)["normal"].astype(np.float16)
    expected = RULES[rule](x.astype(F32))
    for same in (x, x.astype(np.float64), np.asfortranarray(x), x.astype(F32)[::-1][::-1]):
        got = RULES[rule](same)
        assert (got.q == expected.q).all()
        assert (got.d == expected.d).all()
        assert (got.q.dtype, got.d.dtype) == (np.int8, F32)


@pytest.mark.parametrize("rule", RULES)
def test_f16_scales_are_f16_values(rule: str):
    d = RULES[rule](distributions(8, 64)["heavy"], True).d
    assert (d.astype(np.float16).astype(F32) == d).all()


@pytest.mark.parametrize("rule", RULES)
def test_what_no_rule_takes(rule: str):
    for bad in (np.nan, np.inf, -np.inf, 1e39):
        x = np.ones((3, 96))
        x[1, 70] = bad
        with pytest.raises(QuantizeError, match="non-finite weight in row 1, block 2"):
            RULES[rule](x)
    for shape in ((3, 33), (32,), (2, 3, 32), (0, 32)):
        with pytest.raises(QuantizeError, match="a matrix"):
            RULES[rule](np.ones(shape))
