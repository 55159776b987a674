import { closeSync, openSync } from 'node:fs'
import pino from 'pino'
import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { hideTokens, type Logger } from '../../base/logger.js'
import { within } from '../../base/within.js'
import type { Actor, Door } from '../../identity/actor.js'
import { AUDIT_LEVELS, type AuditLevel } from '../../ports/audit-levels.js'
import type { ObservedAction, Observer, OperatorAction } from '../observer.js'

/** Who did it. */
interface Who {
  readonly door: Door
  /** Session id, as in `welcome` and in the log; absent for requests over HTTP. */
  readonly session?: string | undefined
  /** `sub` of the token; absent for anonymous clients. */
  readonly user?: string | undefined
  /** The client's IP address; absent when it is not known. */
  readonly address?: string | undefined
}

/** One line of the audit log, without its `time`. `docs/security.md` lists the members. */
type AuditEvent =
  | ({ readonly event: 'connected' } & Who)
  | ({ readonly event: 'disconnected' } & Who & {
        readonly code: number
        readonly reason: string
        readonly durationMs: number
      })
  | ({ readonly event: 'listened' | 'unlistened' } & Who & { readonly pattern: string })
  | ({ readonly event: 'refused' } & Who & {
        readonly action: ObservedAction
        readonly code: ErrorCode
        /** The key or the pattern. */
        readonly target?: string | undefined
      })
  | {
      readonly event: 'upgrade-refused'
      readonly address: string
      /** The page that asked; clients choose it, so it is cut. */
      readonly origin?: string | undefined
      readonly code: ErrorCode
    }
  /** What an operator did. */
  | ({ readonly event: 'operated' } & Who & { readonly action: OperatorAction; readonly target: string })
  /** Refusals of a session or an address that were not written, because there were too many within a second. */
  | { readonly event: 'omitted'; readonly session?: string; readonly address?: string; readonly count: number }

/** Options of an {@link AuditLog}. */
export interface AuditLogOptions {
  /** `stderr`, or the name of a file, which is created readable by its owner alone. */
  readonly target: string
  readonly level: AuditLevel
  readonly logger: Pick<Logger, 'error'>
  /** Unix time in milliseconds; default `Date.now`. */
  readonly now?: () => number
}

/** Lines that may wait for a slow disk or pipe. Further ones are dropped and counted. */
const MAX_WAITING_BYTES = 4 * 1_048_576
const MAX_ORIGIN_CHARS = 200
const ERROR_LOG_INTERVAL_MS = 60_000
const STDERR = 2

/**
 * Writes who connected, listened, was refused and was disconnected, and what operators did: one JSON object per line, in
 * the order of events. It
 * never blocks the event loop, and it never contains tokens or payloads.
 */
export class AuditLog {
  readonly #options: AuditLogOptions
  readonly #now: () => number
  readonly #budget: RefusalBudget
  #stream: ReturnType<typeof pino.destination> | undefined
  #writtenCount = 0
  #droppedCount = 0
  #errorLoggedMs = Number.NEGATIVE_INFINITY

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#budget = new RefusalBudget((source, count) => {
      const [kind = '', name = ''] = splitSource(source)
      this.#write({ event: 'omitted', ...(kind === '' ? undefined : { [kind]: name }), count })
    }, this.#now)
  }

  /** Lines since the start: written, or dropped because the disk was too slow, full or gone. */
  stats(): { readonly writtenCount: number; readonly droppedCount: number } {
    return { writtenCount: this.#writtenCount, droppedCount: this.#droppedCount }
  }

  /**
   * Opens the file.
   * @throws {WebMQError} `E_OPTION_INVALID` when that is not possible.
   */
  open(): void {
    const { target } = this.#options
    if (target !== 'stderr') assertWritable(target)
    const dest = target === 'stderr' ? STDERR : target
    const stream = pino.destination({ dest, sync: false, append: true, mode: 0o600, maxLength: MAX_WAITING_BYTES })
    stream.on('drop', () => {
      this.#droppedCount++
      this.#writtenCount--
    })
    stream.on('error', (err: Error) => this.#failed(err))
    this.#stream = stream
  }

  /** Opens the file again by its name, after a tool has moved it away. Without a file it does nothing. */
  reopen(): void {
    if (this.#options.target === 'stderr') return
    try {
      this.#stream?.reopen(this.#options.target)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Writes what waits, within a time. */
  async close(limitMs: number): Promise<void> {
    const stream = this.#stream
    if (stream === undefined) return
    this.#budget.flush()
    this.#stream = undefined
    const closed = new Promise<void>((resolve) => {
      stream.once('close', resolve)
    })
    stream.end()
    if (await within(closed, limitMs)) return
    stream.destroy()
    this.#options.logger.error('the last lines of the audit log could not be written in time')
  }

  /** Is told of the sessions. */
  observer(): Observer {
    const level = AUDIT_LEVELS.indexOf(this.#options.level)
    return {
      ...this.#refusals(),
      ...(level >= AUDIT_LEVELS.indexOf('connections') ? this.#connections() : undefined),
      ...(level >= AUDIT_LEVELS.indexOf('listens') ? this.#listens() : undefined),
    }
  }

  #refusals(): Observer {
    return {
      refused: (actor, action, code, target) => {
        if (!this.#budget.take(actor.id === '' ? `address ${actor.address}` : `session ${actor.id}`)) return
        this.#write({ event: 'refused', ...whoOf(actor), action, code, target })
      },
      upgradeRefused: ({ address, origin }, code) => {
        if (!this.#budget.take(`address ${address}`)) return
        this.#write({ event: 'upgrade-refused', address, origin: origin?.slice(0, MAX_ORIGIN_CHARS), code })
      },
      operated: (actor, action, target) => this.#write({ event: 'operated', ...whoOf(actor), action, target }),
    }
  }

  #connections(): Observer {
    return {
      connected: (session) => this.#write({ event: 'connected', ...whoOf(session) }),
      disconnected: (session, code, reason, durationMs) =>
        this.#write({ event: 'disconnected', ...whoOf(session), code, reason, durationMs }),
    }
  }

  #listens(): Observer {
    return {
      listened: (session, pattern) => this.#write({ event: 'listened', ...whoOf(session), pattern }),
      unlistened: (session, pattern) => this.#write({ event: 'unlistened', ...whoOf(session), pattern }),
    }
  }

  /** Clients choose some of the texts, so what looks like a token is hidden. */
  #write(event: AuditEvent): void {
    const { event: name, ...members } = event
    const line = JSON.stringify({ time: new Date(this.#now()).toISOString(), event: name, ...members })
    if (this.#stream === undefined) {
      this.#droppedCount++
      return
    }
    this.#writtenCount++
    this.#stream.write(`${hideTokens(line)}\n`)
  }

  #failed(err: unknown): void {
    if (this.#now() - this.#errorLoggedMs < ERROR_LOG_INTERVAL_MS) return
    this.#errorLoggedMs = this.#now()
    this.#options.logger.error({ err }, 'the audit log cannot be written')
  }
}

function whoOf({ door, id, userId, address }: Actor): Who {
  return {
    door,
    ...(id === '' ? undefined : { session: id }),
    ...(userId === undefined ? undefined : { user: userId }),
    ...(address === '' ? undefined : { address }),
  }
}

/** `session <id>` or `address <ip>`; an empty text stands for all that could not be counted. */
function splitSource(source: string): readonly string[] {
  const [kind = '', name = ''] = source.split(' ')
  return source === '' ? [] : [kind, name]
}

function assertWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new WebMQError('E_OPTION_INVALID', { detail: `auditLog: ${reason}`, cause })
  }
}

/** Lines of one session or address per second: a client that is refused again and again must not fill the disk. */
const LINES_PER_SECOND = 10
/** Sessions and addresses that are counted at once; further ones get no line. Each costs about 100 bytes, for a second. */
const MAX_SOURCES = 10_000
const PERIOD_MS = 1_000

/** Bounds the lines that one source of refusals causes. Forgets everything each second. */
class RefusalBudget {
  readonly #now: () => number
  readonly #tellOmitted: (source: string, count: number) => void
  readonly #counts = new Map<string, number>()
  #startedMs = Number.NEGATIVE_INFINITY

  /**
   * @param tellOmitted Called at the end of a second, once for each source that had too many.
   * @param now A clock in milliseconds.
   */
  constructor(tellOmitted: (source: string, count: number) => void, now: () => number) {
    this.#tellOmitted = tellOmitted
    this.#now = now
  }

  /** Whether this refusal gets a line. */
  take(source: string): boolean {
    if (this.#now() - this.#startedMs >= PERIOD_MS) this.flush()
    const count = this.#counts.get(source) ?? 0
    if (count === 0 && this.#counts.size >= MAX_SOURCES) {
      // One entry, without lines of its own, for all that come too late.
      this.#counts.set('', (this.#counts.get('') ?? LINES_PER_SECOND) + 1)
      return false
    }
    this.#counts.set(source, count + 1)
    return count < LINES_PER_SECOND
  }

  /** Begins a new second. */
  flush(): void {
    for (const [source, count] of this.#counts) {
      if (count > LINES_PER_SECOND) this.#tellOmitted(source, count - LINES_PER_SECOND)
    }
    this.#counts.clear()
    this.#startedMs = this.#now()
  }
}
