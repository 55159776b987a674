import { createRandom, type Random, randomInteger, sampleDistinct } from './random.js'

/** Options of a plan; equal options give equal plans in every thread. */
export interface KeyPlanOptions {
  readonly clientCount: number
  /** Distinct keys each client listens to; at most the pool. */
  readonly listensPerClient: number
  readonly keyPoolSize: number
  readonly publishRatePerSecond: number
  readonly durationUs: number
  readonly warmupUs: number
  readonly seed: number
}

export interface Publication {
  readonly client: number
  /** Negative: belongs to the warm-up and is not counted. */
  readonly turn: number
  readonly key: number
  /** How many messages of the window this client has published to this key before. */
  readonly keySequence: number
  /** Intended send time in microseconds after the start of the window; negative in the warm-up. */
  readonly atUs: number
}

/** The random streams that one client draws from; see {@link createRandom}. */
const STREAMS_PER_CLIENT = 4
const LISTENS_STREAM = 0
const PHASE_STREAM = 1
const WINDOW_STREAM = 2
const WARMUP_STREAM = 3

/**
 * The plan of a run: all listens and publishes, decided by the seed alone before the run starts.
 *
 * Every thread builds its own copy, so the load does not depend on timing, and the number of expected deliveries is
 * exact.
 */
export class KeyPlan {
  readonly options: KeyPlanOptions
  readonly periodUs: number
  readonly #listens: readonly (readonly number[])[]
  readonly #listenerCounts: Uint32Array
  readonly #phasesUs: Float64Array

  constructor(options: KeyPlanOptions) {
    const { clientCount, listensPerClient, keyPoolSize, publishRatePerSecond } = options
    this.options = options
    this.periodUs = 1_000_000 / publishRatePerSecond
    this.#listens = Array.from({ length: clientCount }, (_, client) =>
      sampleDistinct(this.#random(client, LISTENS_STREAM), listensPerClient, keyPoolSize),
    )
    this.#listenerCounts = new Uint32Array(keyPoolSize)
    for (const keys of this.#listens) {
      for (const key of keys) this.#listenerCounts[key] = this.listenerCount(key) + 1
    }
    this.#phasesUs = Float64Array.from(
      { length: clientCount },
      (_, client) => this.#random(client, PHASE_STREAM)() * this.periodUs,
    )
  }

  /** The distinct keys a client listens to, ascending. */
  listensOf(client: number): readonly number[] {
    return this.#listens[client] ?? []
  }

  /** How many clients listen to a key, and so must receive each of its messages. */
  listenerCount(key: number): number {
    return this.#listenerCounts[key] ?? 0
  }

  /**
   * When in each period a client publishes, in [0, period).
   * Random, because uncoordinated clients spread over the period and sometimes coincide.
   */
  phaseUs(client: number): number {
    return this.#phasesUs[client] ?? 0
  }

  /** Draws the keys of one client's messages, in the order they are sent. */
  publisher(client: number): Publisher {
    return new Publisher(
      client,
      this.options.keyPoolSize,
      this.#random(client, WINDOW_STREAM),
      this.#random(client, WARMUP_STREAM),
    )
  }

  #random(client: number, stream: number): Random {
    return createRandom(this.options.seed, client * STREAMS_PER_CLIENT + stream)
  }
}

/** One client's messages, drawn one after the other. */
export class Publisher {
  readonly #client: number
  readonly #keyPoolSize: number
  readonly #windowRandom: Random
  readonly #warmupRandom: Random
  readonly #keySequences = new Map<number, number>()

  constructor(client: number, keyPoolSize: number, windowRandom: Random, warmupRandom: Random) {
    this.#client = client
    this.#keyPoolSize = keyPoolSize
    this.#windowRandom = windowRandom
    // Its own stream, so that the length of the warm-up does not change the window's messages.
    this.#warmupRandom = warmupRandom
  }

  /** The message of this turn. Call it once for every turn, in order. */
  next(turn: number, atUs: number): Publication {
    if (turn < 0) {
      const key = randomInteger(this.#warmupRandom, this.#keyPoolSize)
      return { client: this.#client, turn, key, keySequence: 0, atUs }
    }
    const key = randomInteger(this.#windowRandom, this.#keyPoolSize)
    const keySequence = this.#keySequences.get(key) ?? 0
    this.#keySequences.set(key, keySequence + 1)
    return { client: this.#client, turn, key, keySequence, atUs }
  }
}

/** The routing key of a number of the pool. */
export function keyName(prefix: string, key: number): string {
  return `${prefix}.${key}`
}
