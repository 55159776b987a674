import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { type LineCounts, LineWriter, noLines, standardWriter } from '../../../kernel/base/line-writer.js'
import { LogPace } from '../../../kernel/base/log-pace.js'
import { hideTokens, type Logger } from '../../../kernel/base/logger.js'
import { reasonOf } from '../../../kernel/base/reason.js'
import type { Actor } from '../../../kernel/identity/actor.js'
import { AUDIT_LEVELS, type AuditLevel } from '../../../kernel/ports/audit-levels.js'
import type { Observer } from '../observer.js'

export interface AuditLogOptions {
  /** `stderr`, or the name of a file, which is created readable by its owner alone. */
  readonly target: string
  readonly level: AuditLevel
  readonly logger: Pick<Logger, 'error'>
  /** Unix time in milliseconds; default `Date.now`. */
  readonly now?: () => number
}

const MAX_ORIGIN_CHARS = 200
const ERROR_LOG_INTERVAL_MS = 60_000
const STDERR = 2

/**
 * Writes who connected, listened, was refused and was disconnected, and what operators did: one JSON object per line, in
 * the order of events. It never blocks the event loop, and it never contains tokens or payloads.
 */
export class AuditLog {
  readonly #options: AuditLogOptions
  readonly #now: () => number
  readonly #budget: RefusalBudget
  #writer: LineWriter | undefined
  readonly #counts = noLines()
  readonly #errorPace = new LogPace(ERROR_LOG_INTERVAL_MS)

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#budget = new RefusalBudget((source, count) => this.#write('omitted', { ...source, count }), this.#now)
  }

  /** Lines since the start. Those that were dropped found the disk too slow, full or gone for too long. */
  stats(): Readonly<LineCounts> {
    return this.#counts
  }

  /** Opens the file. @throws {WebMQError} `E_OPTION_INVALID` when that is not possible. */
  open(): void {
    const { target } = this.#options
    try {
      this.#writer = target === 'stderr' ? standardWriter(STDERR) : new LineWriter(target, (err) => this.#failed(err))
    } catch (cause) {
      throw invalidOption(`auditLog: ${reasonOf(cause)}`, cause)
    }
  }

  /** Opens the file again by its name, after a tool has moved it away. Without a file it does nothing. */
  reopen(): void {
    this.#writer?.reopen()
  }

  /** Writes what waits, within a time. The log says how many lines were lost. */
  async close(limitMs: number): Promise<void> {
    const writer = this.#writer
    if (writer === undefined) return
    this.#budget.flush()
    this.#writer = undefined
    await writer.flush(limitMs)
    if (this.#options.target !== 'stderr') writer.close()
    const { droppedCount } = this.#counts
    if (droppedCount > 0) this.#options.logger.error({ droppedCount }, 'lines of the audit log were lost')
  }

  observer(): Observer {
    const level = AUDIT_LEVELS.indexOf(this.#options.level)
    return {
      ...(level >= AUDIT_LEVELS.indexOf('connections') ? this.#connections() : undefined),
      ...(level >= AUDIT_LEVELS.indexOf('listens') ? this.#listens() : undefined),
      refused: (actor, action, code, target) => {
        const { id: session, address } = actor
        if (!this.#budget.take(session === '' ? { address } : { session })) return
        this.#write('refused', { ...whoOf(actor), action, code, target })
      },
      upgradeRefused: ({ address, origin }, code) => {
        if (!this.#budget.take({ address })) return
        this.#write('upgrade-refused', { address, origin: origin?.slice(0, MAX_ORIGIN_CHARS), code })
      },
      turnedAway: (count) => this.#write('upgrade-refused', { code: 'E_CONNECTION_LIMIT', count }),
      operated: (actor, action, target) => this.#write('operated', { ...whoOf(actor), action, target }),
    }
  }

  #connections(): Observer {
    return {
      connected: (session) => this.#write('connected', whoOf(session)),
      disconnected: (session, code, reason, durationMs) =>
        this.#write('disconnected', { ...whoOf(session), code, reason, durationMs }),
    }
  }

  #listens(): Observer {
    return {
      listened: (session, pattern) => this.#write('listened', { ...whoOf(session), pattern }),
      unlistened: (session, pattern) => this.#write('unlistened', { ...whoOf(session), pattern }),
    }
  }

  /** `docs/security.md` lists the members of each event. Clients choose some of the texts, so what looks like a token is hidden. */
  #write(event: string, members: object): void {
    const line = JSON.stringify({ time: new Date(this.#now()).toISOString(), event, ...members })
    if (this.#writer === undefined) this.#counts.droppedCount++
    else this.#writer.write(`${hideTokens(line)}\n`, this.#counts)
  }

  #failed(err: unknown): void {
    if (this.#errorPace.take() !== undefined) this.#options.logger.error({ err }, 'the audit log cannot be written')
  }
}

/** Without a session, a user or an address where there is none. */
function whoOf({ door, id, userId, address }: Actor): object {
  return { door, session: id || undefined, user: userId, address: address || undefined }
}

/** Lines of one session or address per second: a client that is refused again and again must not fill the disk. */
const LINES_PER_SECOND = 10
/** Sessions and addresses that are counted at once; further ones get no line. Each costs about 100 bytes, for a second. */
const MAX_SOURCES = 10_000
const PERIOD_MS = 1_000

/** Whose refusals are counted together: those of a session, of an address, or all that could not be counted. */
interface Source {
  readonly session?: string
  readonly address?: string
}

/** Bounds the lines that one source of refusals causes. Forgets everything each second. */
class RefusalBudget {
  readonly #now: () => number
  readonly #tellOmitted: (source: Source, count: number) => void
  readonly #counts = new Map<string, { readonly source: Source; count: number }>()
  /** Those that came too late to have an entry. */
  #uncounted = 0
  #startedMs = Number.NEGATIVE_INFINITY

  /**
   * @param tellOmitted Called at the end of a second, once for each source that had too many.
   * @param now A clock in milliseconds.
   */
  constructor(tellOmitted: (source: Source, count: number) => void, now: () => number) {
    this.#tellOmitted = tellOmitted
    this.#now = now
  }

  take(source: Source): boolean {
    if (this.#now() - this.#startedMs >= PERIOD_MS) this.flush()
    const name = source.session ?? `address ${source.address}`
    const entry = this.#counts.get(name) ?? { source, count: 0 }
    if (entry.count === 0 && this.#counts.size >= MAX_SOURCES) {
      this.#uncounted++
      return false
    }
    this.#counts.set(name, entry)
    return entry.count++ < LINES_PER_SECOND
  }

  /** Begins a new second. */
  flush(): void {
    for (const { source, count } of this.#counts.values()) {
      if (count > LINES_PER_SECOND) this.#tellOmitted(source, count - LINES_PER_SECOND)
    }
    if (this.#uncounted > 0) this.#tellOmitted({}, this.#uncounted)
    this.#counts.clear()
    this.#uncounted = 0
    this.#startedMs = this.#now()
  }
}
