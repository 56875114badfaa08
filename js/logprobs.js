// logprobs.js - logits as probabilities: natural logarithms of their softmax, in double.

/** What is to be taken from a logit. */
function logOfSum(logits) {
  let largest = -Infinity;
  for (const logit of logits) if (logit > largest) largest = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  return largest + Math.log(sum);
}

/** How surprised one is by `target`: minus the logarithm of its probability. */
export const surprise = (logits, target) => logOfSum(logits) - logits[target];

/**
 * @param {Float32Array} logits
 * @param {number} id that was chosen
 * @param {number} n of the likeliest
 * @returns {{ id: number, logprob: number, top: { id: number, logprob: number }[] }} top: likeliest first, of equals the lower
 *   id first
 */
export function logprobsOf(logits, id, n) {
  const offset = logOfSum(logits);
  const top = likeliest(logits, n).map((each) => ({ id: each, logprob: logits[each] - offset }));
  return { id, logprob: logits[id] - offset, top };
}

function likeliest(logits, n) {
  const best = []; // ids, likeliest first
  if (n === 0) return best;
  for (let id = 0; id < logits.length; id++) {
    if (best.length === n && !(logits[id] > logits[best[n - 1]])) continue;
    let at = best.length;
    while (at > 0 && logits[id] > logits[best[at - 1]]) at--;
    best.splice(at, 0, id);
    if (best.length > n) best.pop();
  }
  return best;
}
