import { parseArgs } from 'node:util'

/** Executions between two checks of the time. */
const BATCH = 500

/** mulberry32: small, seedable, good enough to choose test cases. */
export function createRandom(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** An integer from 0 to `limit` - 1. */
  const below = (limit) => Math.floor(next() * limit)
  return { next, below, pick: (items) => items[below(items.length)] }
}

/** Bytes that are nearly those of an item of `corpus`: cut, repeated, replaced, or with one of `interesting` in them. */
export function mutate(random, corpus, interesting) {
  let bytes = [...random.pick(corpus)]
  for (let count = random.below(5); count > 0; count--) {
    const at = random.below(bytes.length + 1)
    const kind = random.below(6)
    if (kind === 0) bytes.splice(at, 1 + random.below(4))
    else if (kind === 1) bytes.splice(at, 0, ...random.pick(interesting))
    else if (kind === 2) bytes.splice(at, 1, random.below(256))
    else if (kind === 3) bytes.splice(at, 1, ...random.pick(interesting))
    else if (kind === 4) bytes.splice(at, 0, ...bytes.slice(random.below(bytes.length + 1)).slice(0, 400))
    else bytes = [...bytes.slice(0, at), ...random.pick(corpus).subarray(random.below(40))]
  }
  return bytes
}

export function randomBytes(random) {
  return Array.from({ length: random.below(random.below(10) === 0 ? 3_000 : 60) }, () => random.below(256))
}

/**
 * Runs a target until the time is over. At the first finding, exits with 1 and prints how to repeat it. A target builds
 * an input from the given random numbers, checks it, and throws on a finding. It returns the names of the cases that it
 * has covered, or a promise of them; their counts show that the run covered all of them.
 */
export async function fuzz(name, target) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } } })
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed)
  const random = createRandom(seed)
  const startMs = performance.now()
  const endMs = startMs + Number(values.seconds) * 1_000
  const seenCounts = new Map()
  let executions = 0
  console.log(`${name}: ${values.seconds} s, seed ${seed}`)
  try {
    while (performance.now() < endMs) {
      for (let index = 0; index < BATCH; index++, executions++) {
        const covered = target(random)
        // A promise for each execution would cost the fast targets more than they do themselves.
        for (const seen of covered instanceof Promise ? await covered : covered)
          seenCounts.set(seen, (seenCounts.get(seen) ?? 0) + 1)
      }
    }
  } catch (error) {
    console.error(error)
    console.error(`${name}: finding in execution ${executions}; repeat with --seed ${seed}`)
    process.exitCode = 1
    return
  }
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(0)
  console.log(`${name}: ${executions.toLocaleString('en')} executions in ${seconds} s, no finding`)
  for (const [seen, count] of [...seenCounts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    console.log(`  ${count.toLocaleString('en').padStart(13)}  ${seen}`)
  }
}
