import fc from 'fast-check'

/** Where a listen begins. */
export type Start =
  | { readonly from: 'now' }
  | { readonly from: 'last'; readonly count: number }
  | { readonly from: 'time'; readonly rewindMs: number }

/** A subscription of a schedule. */
export interface PlannedListen {
  /** Behind the prefix that keeps runs apart. */
  readonly pattern: string
  readonly start: Start
}

/** A client that listens. */
export interface PlannedClient {
  readonly node: number
  readonly listens: readonly PlannedListen[]
}

/** A publisher. `twice`: every message is published by two clients, on two nodes where there are two, with the same id. */
export interface PlannedPublisher {
  readonly node: number
  readonly mode: 'once' | 'twice'
}

/** What is done to a client that listens; numbers are taken modulo what there is. */
export type ClientStep =
  /** Its connection is reset; it comes back to the same node. */
  | { readonly kind: 'cut'; readonly client: number }
  /** Its connection is half-open: nothing comes through, and nobody is told. */
  | { readonly kind: 'swallow'; readonly client: number }
  /** It reads nothing for a moment. */
  | { readonly kind: 'stall'; readonly client: number }
  /** Its connection is reset; it comes back to another node. */
  | { readonly kind: 'switch'; readonly client: number; readonly node: number }
  /** It is closed, and another one, on any node, goes on from the positions that it had: a page that is loaded again. */
  | { readonly kind: 'renew'; readonly client: number; readonly node: number }
  /** It listens with one more pattern. */
  | { readonly kind: 'listen'; readonly client: number; readonly listen: PlannedListen }

/** What is done to a publisher. */
export type PublisherStep =
  /** Its connections are reset; what is not acknowledged is published again, with the same ids, on this node. */
  { readonly kind: 'move-publisher'; readonly publisher: number; readonly node: number }

/** What is done to what everybody shares. */
export type SystemStep =
  /** A node drains, stops, and starts again. */
  | { readonly kind: 'restart-node'; readonly node: number }
  /** A node dies without a word, and starts again. */
  | { readonly kind: 'crash-node'; readonly node: number }
  /** One of the faults of the broker begins, and ends. */
  | { readonly kind: 'break-broker'; readonly fault: number }

/** One thing that is done, when `after` more messages were published. */
export type Step = (ClientStep | PublisherStep | SystemStep) & { readonly after: number }

/** All that is random about a run. */
export interface Schedule {
  readonly publishers: readonly PlannedPublisher[]
  readonly clients: readonly PlannedClient[]
  readonly steps: readonly Step[]
}

/** Names of what can be done. */
export type StepKind = Step['kind']

/** Keys that are published to, behind the prefix of the run. The last ones are matched by wildcards only. */
export const KEYS = ['a.0', 'a.1', 'b.0', 'b.1.deep', 'c']

/** What is listened with, behind the prefix of the run: overlapping, equal, and with both wildcards. */
const PATTERNS = ['a.0', 'a.1', 'a.*', '*.0', '#', 'b.#', '#.0', '*.*', 'b.*.deep']

const MAX_NODES = 8
const MAX_LAST = 60
const MAX_REWIND_MS = 100
/** Messages between two steps. */
const MAX_AFTER = 60

const node = fc.nat({ max: MAX_NODES - 1 })
const index = fc.nat({ max: 7 })
const start: fc.Arbitrary<Start> = fc.oneof(
  fc.constant<Start>({ from: 'now' }),
  fc.record({ from: fc.constant('last' as const), count: fc.integer({ min: 1, max: MAX_LAST }) }),
  fc.record({ from: fc.constant('time' as const), rewindMs: fc.integer({ min: 1, max: MAX_REWIND_MS }) }),
)
const listen: fc.Arbitrary<PlannedListen> = fc.record({ pattern: fc.constantFrom(...PATTERNS), start })

const steps: { readonly [K in StepKind]: fc.Arbitrary<Omit<Extract<Step, { kind: K }>, 'after'>> } = {
  cut: fc.record({ kind: fc.constant('cut' as const), client: index }),
  swallow: fc.record({ kind: fc.constant('swallow' as const), client: index }),
  stall: fc.record({ kind: fc.constant('stall' as const), client: index }),
  switch: fc.record({ kind: fc.constant('switch' as const), client: index, node }),
  renew: fc.record({ kind: fc.constant('renew' as const), client: index, node }),
  listen: fc.record({ kind: fc.constant('listen' as const), client: index, listen }),
  'move-publisher': fc.record({ kind: fc.constant('move-publisher' as const), publisher: index, node }),
  'restart-node': fc.record({ kind: fc.constant('restart-node' as const), node }),
  'crash-node': fc.record({ kind: fc.constant('crash-node' as const), node }),
  'break-broker': fc.record({ kind: fc.constant('break-broker' as const), fault: index }),
}

/** How likely each kind of step is, relative to the others. */
export type StepWeights = Partial<Readonly<Record<StepKind, number>>>

/** What schedules are made of. */
export interface SchedulePlan {
  readonly weights: StepWeights
  /** What happens once at least in every run. */
  readonly always?: StepKind
  readonly maxSteps: number
  /** How publishers publish; one that is named twice is twice as likely. */
  readonly modes: readonly PlannedPublisher['mode'][]
}

const stepOf = (kind: StepKind) =>
  fc
    .tuple(steps[kind] as fc.Arbitrary<Step>, fc.nat({ max: MAX_AFTER }))
    .map(([step, after]): Step => ({ ...step, after }))

/** Random schedules. */
export function schedules({ weights, always, maxSteps, modes }: SchedulePlan): fc.Arbitrary<Schedule> {
  const kinds = (Object.entries(weights) as [StepKind, number][]).map(([kind, weight]) => ({
    weight,
    arbitrary: stepOf(kind),
  }))
  const anySteps = (minLength: number, maxLength: number) =>
    fc.array(fc.oneof(...kinds), { minLength, maxLength, size: 'max' })
  return fc.record({
    publishers: fc.array(fc.record({ node, mode: fc.constantFrom(...modes) }), {
      minLength: 1,
      maxLength: 3,
    }),
    clients: fc.array(fc.record({ node, listens: fc.array(listen, { minLength: 1, maxLength: 3 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
    steps: always
      ? fc
          .tuple(stepOf(always), anySteps(0, maxSteps - 1), fc.nat({ max: maxSteps - 1 }))
          .map(([step, others, at]) => others.toSpliced(at, 0, step))
      : anySteps(1, maxSteps),
  })
}
