import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { type LineCounts, LineWriter, noLines, standardWriter } from '../../../kernel/base/line-writer.js'
import { LogPace } from '../../../kernel/base/log-pace.js'
import { hideTokens, type Logger } from '../../../kernel/base/logger.js'
import { reasonOf } from '../../../kernel/base/reason.js'
import type { Actor } from '../../../kernel/identity/actor.js'
import { countedAddress } from '../../../kernel/identity/client-address.js'
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
  readonly #refusals: LineBudget
  readonly #listening: LineBudget
  #writer: LineWriter | undefined
  readonly #counts = noLines()
  readonly #errorPace = new LogPace(ERROR_LOG_INTERVAL_MS)

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    const omit = (source: Source, count: number) => this.#write('omitted', { ...source, count })
    this.#refusals = new LineBudget(REFUSAL_LINES, omit, this.#now)
    this.#listening = new LineBudget(
      LISTEN_LINES,
      (source, count) => omit({ ...source, action: 'listen' }, count),
      this.#now,
    )
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
    this.#refusals.flush()
    this.#listening.flush()
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
        if (!this.#refusals.take(session === '' ? { address } : { session })) return
        this.#write('refused', { ...whoOf(actor), action, code, target })
      },
      upgradeRefused: ({ address, origin }, code) => {
        if (!this.#refusals.take({ address })) return
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
    const write = (event: string, session: Actor, pattern: string) => {
      if (this.#listening.take(clientOf(session))) this.#write(event, { ...whoOf(session), pattern })
    }
    return {
      listened: (session, pattern) => write('listened', session, pattern),
      unlistened: (session, pattern) => write('unlistened', session, pattern),
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

/** Counted for its user or its address, so that it gets no new lines by connecting again; many clients may share a private address. */
function clientOf({ id: session, userId: user, address }: Actor): Source {
  if (user !== undefined) return { user }
  const counted = countedAddress(address)
  return counted === undefined ? { session } : { address: counted }
}

/** Lines that one source may cause. */
interface LineLimits {
  /** At once, after a rest. */
  readonly burst: number
  readonly perSecond: number
  /** Whether those that could not be counted get lines. */
  readonly isOpen: boolean
}

/** A client that is refused again and again must not fill the disk. */
const REFUSAL_LINES: LineLimits = { burst: 10, perSecond: 10, isOpen: false }
/** Nor must one that begins and ends listens. All listens of a user's connections that come back at once get their lines. */
const LISTEN_LINES: LineLimits = { burst: 10_000, perSecond: 10, isOpen: true }
/** Sources that are counted at once. Each costs about 100 bytes. */
const MAX_SOURCES = 10_000
const PERIOD_MS = 1_000

/** Whose lines are counted together: those of a session, a user or an address, or all that could not be counted. */
interface Source {
  readonly session?: string
  readonly user?: string
  readonly address?: string
  readonly action?: string
}

/** Bounds the lines that one source causes. Each second, it says how many were left out, and forgets those whose burst is whole. */
class LineBudget {
  readonly #limits: LineLimits
  readonly #now: () => number
  readonly #tellOmitted: (source: Source, count: number) => void
  readonly #counts = new Map<string, { readonly source: Source; count: number; omittedCount: number }>()
  /** Those that came too late to have an entry. */
  #uncounted = 0
  #startedMs = Number.NEGATIVE_INFINITY

  /**
   * @param tellOmitted Called at the end of a second, once for each source that had too many.
   * @param now A clock in milliseconds.
   */
  constructor(limits: LineLimits, tellOmitted: (source: Source, count: number) => void, now: () => number) {
    this.#limits = limits
    this.#tellOmitted = tellOmitted
    this.#now = now
  }

  take(source: Source): boolean {
    const sinceMs = this.#now() - this.#startedMs
    // A clock that was set back begins a new second too.
    if (sinceMs >= PERIOD_MS || sinceMs < 0) this.flush()
    const { burst, isOpen } = this.#limits
    const { session, user, address } = source
    const name = session ?? (user === undefined ? `address ${address}` : `user ${user}`)
    const entry = this.#counts.get(name) ?? { source, count: 0, omittedCount: 0 }
    if (entry.count === 0 && this.#counts.size >= MAX_SOURCES) {
      if (!isOpen) this.#uncounted++
      return isOpen
    }
    this.#counts.set(name, entry)
    if (entry.count < burst) entry.count++
    else entry.omittedCount++
    return entry.omittedCount === 0
  }

  /** Begins a new second. */
  flush(): void {
    const nowMs = this.#now()
    const paidCount = (this.#limits.perSecond * Math.max(PERIOD_MS, nowMs - this.#startedMs)) / PERIOD_MS
    for (const [name, entry] of this.#counts) {
      if (entry.omittedCount > 0) this.#tellOmitted(entry.source, entry.omittedCount)
      entry.omittedCount = 0
      entry.count -= paidCount
      if (entry.count <= 0) this.#counts.delete(name)
    }
    if (this.#uncounted > 0) this.#tellOmitted({}, this.#uncounted)
    this.#uncounted = 0
    this.#startedMs = nowMs
  }
}
