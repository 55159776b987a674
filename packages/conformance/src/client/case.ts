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

/** The server of a case: one of WebMQ, with options beside those of every case, or one that is `played`. */
export interface ServerSetup {
  /** It asks for a token. */
  readonly tokens?: boolean
  readonly options?: Readonly<Record<string, unknown>>
  readonly played?: Played
}

/**
 * A server that does what no good one does. In its texts, `$id` stands for the id of the request, `{deep:N}` for N lists in
 * each other, and `{digits:N}` for a number of N digits.
 */
export interface Played {
  /** Members of the JSON of its `welcome`, as text, besides the usual ones: `"heartbeatMs":-1`. */
  readonly welcome?: string
  /** What it sends for each request of a verb; for others it says `ok`. */
  readonly answers?: Readonly<Record<string, readonly string[]>>
}

/** One step. Values that begin with `$` name what an earlier step kept with `as`: `$p.position`. */
export type Step = CallStep | NextStep | StateStep | StreamStep | PublishStep | FaultStep | WaitStep | PlayStep

/** A command for the adapter. */
export interface CallStep {
  readonly do: string
  readonly client?: string
  /** The command fails with this code, or one of these. */
  readonly error?: string | readonly string[]
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
  /** How often, with `@` for the number in `is`. */
  readonly times?: number
  /** Other messages, and gaps, may come before it. */
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

/** What a server that is played says to all connections, how it greets from now on, or how often it has heard a verb. */
export interface PlayStep {
  readonly play: 'say' | 'welcome' | 'heard'
  readonly text?: string
  readonly times?: number
  readonly welcome?: string
  readonly verb?: string
  readonly atMost?: number
}

/**
 * `answer` ends all connections, and until `release` answers new ones with a status, as a proxy does. `cut` ends all connections. `hold` too, and refuses new ones until `release`. `mute` too, and until `release` lets new
 * ones say nothing but their handshake. `restart` begins another log.
 */
export interface FaultStep {
  readonly fault: 'answer' | 'cut' | 'hold' | 'mute' | 'release' | 'restart'
  readonly status?: number
  readonly body?: string
}

/** Waits for a status of a client. */
export interface WaitStep {
  readonly wait: 'connected' | 'connecting' | 'closed' | number
  readonly client?: string
}
