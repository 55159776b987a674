import { randomBytes } from 'node:crypto'
import { formatStreamPlace, refusalOf, type StreamPlace } from 'webmq-client/protocol'
import { isAfter } from '../ports/position.js'
import type { Author } from '../publishing/author.js'
import type { Publisher } from '../publishing/publisher.js'
import type { StreamFold } from './fold.js'
import { formatMark, type Mark } from './shared-state.js'
import type { StreamWatch } from './watch.js'

/** The next message of a stream with many writers. */
export interface SharedWrite {
  readonly stream: string
  readonly sequence: number
  readonly kind: 'start' | 'append' | 'close' | 'delete'
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly mark: Omit<Mark, 'token'>
}

/**
 * What to write next; `undefined`: no more.
 * @param isTaken The message that it returned last is part of the stream.
 */
export type Decide = (fold: StreamFold, isTaken: boolean) => SharedWrite | undefined

/** Attempts of one message while writers on other nodes are faster. */
const MAX_ATTEMPTS = 16
const TOKEN_BYTES = 6

/**
 * Writes to a stream with many writers. Each message is decided on what the stream is, and has the next number. If another one came
 * to have that number, `decide` is asked again: so what it decided on is what the stream was when its message was taken.
 * @returns How many messages were taken.
 * @throws {WebMQError} `E_NODE_BEHIND`, what `decide` throws, and the errors of {@link Publisher.publish}.
 */
export async function compete(
  publisher: Pick<Publisher, 'publish'>,
  author: Author,
  watch: StreamWatch,
  decide: Decide,
): Promise<number> {
  const written = watch.turn.then(async () => {
    let takenCount = 0
    let isTaken = false
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const write = decide(watch.fold, isTaken)
      if (write === undefined) return takenCount
      isTaken = await publish(publisher, author, watch, write)
      if (!isTaken) continue
      takenCount++
      attempt = 0
    }
    throw refusalOf('E_NODE_BEHIND', { detail: 'too many write to this stream' })
  })
  watch.turn = written.catch(() => undefined)
  return await written
}

/** @returns Whether the message was taken. */
async function publish(
  publisher: Pick<Publisher, 'publish'>,
  author: Author,
  watch: StreamWatch,
  write: SharedWrite,
): Promise<boolean> {
  const { stream, sequence, payload, isBinary } = write
  const { place, token } = placeOf(write, write.mark)
  const { position: at } = await publisher.publish(author, { key: watch.key, payload, place }, isBinary)
  const isSeen = await watch.until(() => {
    const { fold, position } = watch
    if (fold.stream === stream && fold.sequence >= sequence) return true
    return at !== undefined && position !== undefined && !isAfter(at, position)
  })
  if (!isSeen) throw refusalOf('E_NODE_BEHIND')
  const { fold } = watch
  return fold.stream === stream && fold.shared?.recent.includes(`${sequence}:${token}`) === true
}

/** The place of a message, with a mark of its own. */
export function placeOf(
  place: Omit<StreamPlace, 'mark'>,
  mark: Omit<Mark, 'token'>,
): { readonly place: string; readonly token: string } {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  return { place: formatStreamPlace({ ...place, mark: formatMark({ ...mark, token }) }), token }
}
