import { encodeJson, formatStreamPlace } from 'webmq-client/protocol'
import type { Logger } from '../base/logger.js'
import { parseJson } from '../base/parse-json.js'
import { partsOfRollUp } from '../ports/roll-up.js'
import type { Author } from '../publishing/author.js'
import type { Publisher } from '../publishing/publisher.js'
import type { RollUp } from './fold.js'
import type { StreamWatch } from './watch.js'

/** What {@link RollUps} work with. */
export interface RollUpsContext {
  readonly publisher: Pick<Publisher, 'publish'>
  readonly author: Author
  readonly logger: Pick<Logger, 'debug' | 'warn'>
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

  /** Writes a roll-up if the stream has ended without one, or has grown by as much as the log has in one. */
  async update({ key, fold, position }: StreamWatch, isWriter: boolean): Promise<void> {
    const { publisher, author, logger } = this.#context
    const { stream, sequence, status, isActive: isInterim, byteCount, rolledUp } = fold
    if (stream === undefined || status === 'delete' || sequence <= rolledUp.sequence) return
    if (fold.isCut || fold.isForgotten) return
    if (isInterim && !(isWriter && byteCount >= Math.max(MIN_INTERIM_BYTES, 2 * rolledUp.byteCount))) return
    const { maxPayloadBytes } = author.limits
    const next = { sequence, byteCount }
    fold.rolledUp = next
    const payload = byteCount > maxPayloadBytes ? undefined : encodeRollUp(fold.rollUp(position?.offset ?? 0))
    if (payload === undefined || payload.length > maxPayloadBytes) {
      // It stays as its appends: a message of the log is limited.
      if (isInterim || !isWriter) return
      this.failedCount++
      if (!this.#hasWarned)
        logger.warn({ key, byteCount, maxPayloadBytes }, 'a stream larger than maxPayloadBytes stays as its appends')
      this.#hasWarned = true
      return
    }
    const place = formatStreamPlace({ stream, sequence, kind: 'text' })
    // The same on every node: the log has it once.
    const messageId = `${stream}:${sequence}:text`
    try {
      await publisher.publish(author, { key, payload, messageId, place, isInterim }, typeof fold.whole === 'object')
    } catch (err) {
      if (fold.rolledUp === next) fold.rolledUp = rolledUp
      if (!isInterim) this.failedCount++
      logger.debug({ err, key }, 'a stream could not be rolled up yet')
    }
  }
}

function encodeRollUp({ whole = '', ...head }: RollUp): Buffer {
  const text = typeof whole === 'string' ? Buffer.from(encodeJson(whole)) : whole
  return Buffer.concat([Buffer.from(`${encodeJson(head)}\n`), text])
}

/** Reads a roll-up of the log; `undefined` when it is none of a node. */
export function decodeRollUp(payload: Uint8Array, isBinary: boolean): RollUp | undefined {
  const { head, text } = partsOfRollUp(payload)
  try {
    const { appendCount, ...rollUp } = parseJson(head) as RollUp
    const whole = isBinary ? Buffer.from(text) : (parseJson(text) as string)
    return { ...rollUp, appendCount, whole: appendCount === 0 ? undefined : whole }
  } catch {
    // Another program has written it.
    return undefined
  }
}
