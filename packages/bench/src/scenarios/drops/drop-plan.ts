import { createRandom, randomInteger } from '../../load/random.js'
import { DROP_KINDS, type DropKind } from './link.js'

/** When the network of which client is away. Times are milliseconds. */
export interface DropPlan {
  readonly seed: number
  /** All drops begin and end within this time. */
  readonly spanMs: number
  readonly dropMs: number
  /** Of each client: one in each of so many equal parts of the span. */
  readonly count: number
}

export interface Drop {
  /** After the beginning. */
  readonly atMs: number
  readonly kind: DropKind
}

/** The drops of one client, the first one first. The same for every target. */
export function dropsOf(client: number, { seed, spanMs, dropMs, count }: DropPlan): Drop[] {
  const random = createRandom(seed, client)
  const partMs = spanMs / count
  return Array.from({ length: count }, (_, part) => ({
    atMs: part * partMs + random() * (partMs - dropMs),
    kind: DROP_KINDS[randomInteger(random, DROP_KINDS.length)] ?? 'noticed',
  }))
}
