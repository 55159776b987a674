import { formatStreamPlace, type StreamStatus } from 'webmq-client/protocol'
import { isObject } from '../../kernel/base/is-object.js'
import { encodeWithTexts, membersOf } from '../../kernel/base/json-text.js'
import { logBug } from '../../kernel/base/log-bug.js'
import type { Logger } from '../../kernel/base/logger.js'
import { parseJson, textOf } from '../../kernel/base/parse-json.js'
import type { Position } from '../../kernel/ports/broker.js'
import { partsOfRollUp } from '../../kernel/ports/roll-up.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Publisher } from '../../kernel/publishing/publisher.js'
import type { RollUp, StreamFold } from './fold.js'
import { type Piece, shallowJson } from './pieces.js'
import { isSharedState } from './shared-state.js'

/** What {@link RollUps} work with. */
export interface RollUpsContext {
  readonly publisher: Pick<Publisher, 'publish'>
  readonly author: Author
  readonly logger: Pick<Logger, 'debug' | 'warn' | 'error'>
}

/** A stream as it stands, of a key whose log was read up to a position. */
interface Stand {
  readonly key: string
  readonly fold: StreamFold
  readonly position: Position | undefined
}

/** A stream that goes on is rolled up at this size, and each time that it has doubled: so a log that drops its first messages has its text. */
const MIN_INTERIM_BYTES = 65_536

/** Writes streams into the log as one message each. Nobody waits for it, and the next writer or reader tries again. */
export class RollUps {
  readonly #context: RollUpsContext
  /** Ended streams of this node's writers that were too large, or that the broker did not take. */
  failedCount = 0
  #hasWarned = false

  constructor(context: RollUpsContext) {
    this.#context = context
  }

  /** Writes a roll-up if the stream has ended without one, or has grown by as much as the log has in one. Nobody waits for it. */
  update(stand: Stand, isWriter: boolean): void {
    this.#update(stand, isWriter).catch((err: unknown) => {
      logBug(this.#context.logger, { err, key: stand.key }, 'a stream cannot be rolled up')
    })
  }

  async #update({ key, fold, position }: Stand, isWriter: boolean): Promise<void> {
    const { publisher, author, logger } = this.#context
    const { stream, sequence, status, isActive: isInterim, byteCount, rolledUp } = fold
    if (stream === undefined || status === 'delete' || sequence <= rolledUp.sequence) return
    if (fold.isCut || fold.isForgotten) return
    if (isInterim && !(isWriter && byteCount >= Math.max(MIN_INTERIM_BYTES, 2 * rolledUp.byteCount))) return
    const { maxPayloadBytes } = author.limits
    const next = { sequence, byteCount }
    fold.rolledUp = next
    try {
      const payload = byteCount > maxPayloadBytes ? undefined : encodeRollUp(fold.rollUp(position?.offset ?? 0))
      if (payload === undefined || payload.length > maxPayloadBytes) {
        // It stays as its appends: a message of the log is limited.
        if (!isInterim && isWriter) this.#tooLarge(key, byteCount, maxPayloadBytes)
        return
      }
      const place = formatStreamPlace({ stream, sequence, kind: 'text' })
      // The same on every node: the log has it once.
      const messageId = `${stream}:${sequence}:text`
      await publisher.publish(author, { key, payload, messageId, place, isInterim }, typeof fold.whole === 'object')
    } catch (err) {
      if (fold.rolledUp === next) fold.rolledUp = rolledUp
      if (!isInterim) this.failedCount++
      logger.debug({ err, key }, 'a stream could not be rolled up yet')
    }
  }

  #tooLarge(key: string, byteCount: number, maxPayloadBytes: number): void {
    this.failedCount++
    if (!this.#hasWarned)
      this.#context.logger.warn(
        { key, byteCount, maxPayloadBytes },
        'a stream larger than maxPayloadBytes stays as its appends',
      )
    this.#hasWarned = true
  }
}

function encodeRollUp({ whole = '', isCut: _, ...head }: RollUp): Buffer {
  const text = typeof whole === 'string' ? Buffer.from(JSON.stringify(whole)) : whole
  return Buffer.concat([Buffer.from(`${encodeWithTexts(head)}\n`), text])
}

/** Reads a roll-up of the log; `undefined` when it is none of a node. */
export function decodeRollUp(payload: Uint8Array, isBinary: boolean): RollUp | undefined {
  const { head, text } = partsOfRollUp(payload)
  try {
    const json = textOf(head)
    const facts = parseJson(json)
    if (!isFacts(facts)) return undefined
    const whole = isBinary ? Buffer.from(text) : parseJson(text)
    if (typeof whole !== (isBinary ? 'object' : 'string')) return undefined
    const texts = new Map(membersOf(json))
    const given = ['meta', 'result'].map((name) => texts.get(name))
    // An older version has written JSON of any depth. What nobody should look into is missing.
    const [meta, result] = given.map((value) => (value === undefined ? undefined : shallowJson(Buffer.from(value))))
    const isCut = (given[0] !== undefined && meta === undefined) || (given[1] !== undefined && result === undefined)
    const { appendCount, upTo = 0 } = facts
    return { ...facts, upTo, meta, result, isCut, whole: appendCount === 0 ? undefined : (whole as Piece) }
  } catch {
    // Another program has written it.
    return undefined
  }
}

type Facts = Omit<RollUp, 'meta' | 'result' | 'isCut' | 'whole' | 'upTo'> & Partial<Pick<RollUp, 'upTo'>>

const STATUSES: ReadonlySet<unknown> = new Set<StreamStatus>(['active', 'end', 'fail', 'stop', 'lost'])

/** Another program may have written anything. */
function isFacts(value: unknown): value is Facts {
  if (!isObject(value)) return false
  const { status, appendCount, byteCount, upTo, owner, checksum, shared } = value
  return (
    STATUSES.has(status) &&
    [appendCount, byteCount, upTo ?? 0].every((count) => Number.isSafeInteger(count)) &&
    (owner === undefined || typeof owner === 'string') &&
    (checksum === undefined || typeof checksum === 'number') &&
    (shared === undefined || isSharedState(shared))
  )
}
