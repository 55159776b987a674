/** One case, as it stands in a file of `cases/`. README.md describes it. */
export interface Case {
  readonly name: string
  /** Clauses of the protocol. */
  readonly clauses: readonly string[]
  /** What an adapter must be able to do; without it the case is skipped. */
  readonly needs?: readonly string[]
  readonly server?: ServerSetup
  readonly steps: readonly Step[]
}

/** Options of the server, beside those of every case. */
export interface ServerSetup {
  /** It asks for a token. */
  readonly tokens?: boolean
  readonly options?: Readonly<Record<string, unknown>>
}

/** One step. Values that begin with `$` name what an earlier step kept with `as`: `$p.position`. */
export type Step = CallStep | NextStep | StateStep | StreamStep | PublishStep | FaultStep | WaitStep

/** A command for the adapter. */
export interface CallStep {
  readonly do: string
  readonly client?: string
  /** The command fails with this code. */
  readonly error?: string
  /** Members of its answer. */
  readonly gives?: Readonly<Record<string, unknown>>
  /** Keeps the answer under this name. */
  readonly as?: string
  /** Its answer is asked for later, by `await`; with `pending`, there must be none yet. */
  readonly start?: string
  readonly [argument: string]: unknown
}

/** What a listener gets next. */
export interface NextStep {
  readonly next: string
  readonly is: Readonly<Record<string, unknown>>
  /** So many, with `@` for the number in `is`. */
  readonly times?: number
  /** Other messages may come before it. */
  readonly skips?: boolean
  readonly as?: string
}

/** What a state becomes. */
export interface StateStep {
  readonly state: string
  readonly becomes: Readonly<Record<string, unknown>>
}

/** What the reader of a stream comes to. */
export interface StreamStep {
  readonly stream: string
  readonly content: string
  readonly status?: string
  readonly result?: unknown
}

/** Something else publishes, in the server's process. */
export interface PublishStep {
  readonly publish: string
  readonly payload: unknown
  readonly times?: number
  readonly ephemeral?: boolean
}

/**
 * `cut` ends all connections. `hold` too, and refuses new ones until `release`. `mute` too, and until `release` lets new
 * ones say nothing but their handshake. `restart` begins another log.
 */
export interface FaultStep {
  readonly fault: 'cut' | 'hold' | 'mute' | 'release' | 'restart'
}

/** Waits for a status of a client. */
export interface WaitStep {
  readonly wait: 'connected' | 'connecting' | 'closed' | number
  readonly client?: string
}
