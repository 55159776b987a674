import { validateKey, WebMQError } from 'webmq-client/protocol'
import {
  type Backlog,
  type DatabaseOutbox,
  LogPace,
  type OutboxContext,
  type OutboxStats,
  type OutboxStatus,
  type PublishRow,
  reasonOf,
  secretHider,
  within,
} from 'webmq-server/outbox'
import { deleteRows, failRows, measureRows, type OutboxRow, publishRows, readRows, tryToDelete } from './rows.js'
import { DatabaseSession } from './session.js'
import { checkTable } from './table-defect.js'

const BEAT_MS = 5_000
const RETRY_MS = 500
const LOG_PAUSE_MS = 10_000
/** An empty table may be one whose rows are hidden since, so it is looked at again after so long. */
const CHECK_MS = 60_000

/** Of all nodes, the one that holds an advisory lock of PostgreSQL publishes. */
export class PostgresOutbox implements DatabaseOutbox {
  readonly #context: OutboxContext
  readonly #checkMs: number
  readonly #hideSecrets: (text: string) => string
  readonly #counts = { publishedCount: 0, duplicateCount: 0, failedCount: 0, lostCount: 0 }
  readonly #pace = new LogPace(LOG_PAUSE_MS)
  #publish: PublishRow = () => Promise.reject(new WebMQError('E_NOT_RUNNING'))
  status: OutboxStatus = 'down'
  reason: string | undefined
  #backlog: Backlog | undefined
  #session: DatabaseSession | undefined
  #running: Promise<void> | undefined
  #isStopping = false
  #isWoken = false
  /** Rows can be deleted, which this session has tried. */
  #isProven = false
  #wake: () => void = () => undefined

  constructor(context: OutboxContext, checkMs = CHECK_MS) {
    this.#context = context
    this.#checkMs = checkMs
    this.#hideSecrets = secretHider(context.url)
  }

  stats(): OutboxStats {
    const { status, reason } = this
    return { status, ...(reason !== undefined && { reason }), ...this.#counts, ...this.#backlog }
  }

  start(publish: PublishRow): void {
    this.#publish = publish
    this.#running = this.#run()
  }

  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true
    this.#awake()
    if (this.#running !== undefined && !(await within(this.#running, limitMs))) this.#session?.destroy()
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const session = new DatabaseSession(this.#context.url, () => this.#awake())
      this.#session = session
      try {
        await session.connect()
        await this.#takePart(session)
      } catch (error) {
        this.#down(error)
      }
      await session.close()
      this.#isWoken = false
      // Nodes that have lost the database at once come back one after the other.
      await this.#pause(RETRY_MS * (1 + 2 * Math.random()))
    }
  }

  /** Until the node stops. @throws when the database fails. */
  async #takePart(session: DatabaseSession): Promise<void> {
    const { pollMs, logger } = this.#context
    await checkTable(session)
    while (!(await session.lead())) {
      this.#is('waiting')
      await this.#pause(pollMs)
      if (this.#isStopping) return
    }
    const table = await checkTable(session)
    let checkedMs = performance.now()
    this.#isProven = false
    await this.#prove(session, await this.#read(session))
    const measure = async () => {
      this.#backlog = await measureRows(session)
    }
    await measure()
    this.#is('leading')
    logger.info({ table }, 'this node publishes the messages of the database')
    // It also shows PostgreSQL, and this node, that the other one is there.
    const beat = setInterval(() => void measure().catch(() => this.#awake()), BEAT_MS)
    try {
      while (!this.#isStopping) {
        const delayMs = await this.#round(session)
        if (delayMs === 0) continue
        await this.#pause(delayMs)
        if (performance.now() - checkedMs < this.#checkMs) continue
        await checkTable(session)
        checkedMs = performance.now()
      }
    } finally {
      clearInterval(beat)
    }
  }

  /** Publishes a batch. Returns how long to wait for the next one. */
  async #round(session: DatabaseSession): Promise<number> {
    this.#isWoken = false
    const rows = await this.#read(session)
    if (rows.length === 0) return this.#context.pollMs
    await this.#prove(session, rows)
    const mayGoOn = () => !this.#isStopping && session.isFresh
    const { ids, failures, cause } = await publishRows(rows, (row) => this.#publishRow(row), mayGoOn)
    await deleteRows(session, ids)
    await failRows(session, failures)
    this.#counts.failedCount += failures.length
    for (const { row, error } of failures)
      this.#warn({ id: row.id, error }, 'a row of the database cannot be published')
    if (cause !== undefined) this.#warn({ reason: reasonOf(cause) }, 'rows of the database wait')
    return cause === undefined ? 0 : RETRY_MS
  }

  #read(session: DatabaseSession): Promise<OutboxRow[]> {
    const { maxBatchRows, maxBatchBytes, maxPayloadBytes } = this.#context
    return readRows(session, { maxRows: maxBatchRows, maxBytes: maxBatchBytes, maxPayloadBytes })
  }

  /** Once per session, before its first row is published. @throws when rows cannot be deleted. */
  async #prove(session: DatabaseSession, rows: readonly OutboxRow[]): Promise<void> {
    if (this.#isProven || rows.length === 0) return
    await tryToDelete(session, rows)
    this.#isProven = true
  }

  async #publishRow({ key, messageId, json, bytes, byteCount }: OutboxRow): Promise<void> {
    validateKey(key)
    const payload = bytes ?? (json === null ? undefined : Buffer.from(json))
    if (payload === undefined) {
      const detail = `${byteCount} bytes, at most ${this.#context.maxPayloadBytes}`
      throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
    }
    const { isDuplicate } = await this.#publish({ key, payload, isBinary: bytes !== null, messageId })
    this.#counts.publishedCount++
    if (isDuplicate) this.#counts.duplicateCount++
  }

  #is(status: 'waiting' | 'leading'): void {
    this.status = status
    this.reason = undefined
  }

  #down(error: unknown): void {
    if (this.status !== 'down') this.#counts.lostCount++
    this.status = 'down'
    this.#backlog = undefined
    if (this.#isStopping) return
    this.reason = this.#hideSecrets(reasonOf(error))
    this.#warn({ reason: this.reason }, 'the database outbox is down')
  }

  #warn(fields: object, message: string): void {
    const leftOut = this.#pace.take()
    if (leftOut !== undefined) this.#context.logger.warn({ ...fields, ...(leftOut > 0 && { leftOut }) }, message)
  }

  #awake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Ends early when something may have been inserted, the session is lost, or the node stops. */
  async #pause(delayMs: number): Promise<void> {
    if (this.#isWoken || this.#isStopping) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delayMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = () => undefined
  }
}
