/** Yields numbers in [0, 1). */
export type Random = () => number

/**
 * Deterministic random numbers: the same seed and stream give the same numbers on every machine.
 * Streams of one seed are independent, so that one consumer drawing more does not change what another draws.
 *
 * Mulberry32 over a mixed seed: 32 bits of state are plenty to spread keys and phases, and useless for secrets.
 */
export function createRandom(seed: number, stream: number): Random {
  let state = mix(mix(seed | 0) ^ Math.imul(stream + 1, 0x9e3779b1))
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

/** An integer in [0, bound). */
export function randomInteger(random: Random, bound: number): number {
  return Math.floor(random() * bound)
}

/** `count` distinct integers of [0, bound), ascending; all of them if `count` >= `bound`. Cost: O(count log count). */
export function sampleDistinct(random: Random, count: number, bound: number): number[] {
  const chosen = new Set<number>()
  // Floyd's sampling: every subset is equally likely, and no array of `bound` entries is needed.
  for (let top = Math.max(0, bound - count); top < bound; top++) {
    const candidate = randomInteger(random, top + 1)
    chosen.add(chosen.has(candidate) ? top : candidate)
  }
  return [...chosen].sort((a, b) => a - b)
}

function mix(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return bits ^ (bits >>> 16)
}
