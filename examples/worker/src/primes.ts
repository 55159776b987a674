/** The answer of a worker. */
export interface Count {
  readonly count: number
  /** The process that answered. */
  readonly worker: number
}

declare module 'webmq-client' {
  interface Topics {
    'primes.count': number
  }
}

export const MAX_BELOW = 1_000_000

/** The number of primes below a number: the sieve of Eratosthenes. */
export function countPrimes(below: number): number {
  const isComposite = new Uint8Array(Math.max(0, below))
  let count = 0
  for (let candidate = 2; candidate < below; candidate++) {
    if (isComposite[candidate] === 1) continue
    count++
    for (let multiple = candidate * candidate; multiple < below; multiple += candidate) isComposite[multiple] = 1
  }
  return count
}
