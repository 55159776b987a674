import type { ControlChannel } from './control-channel.js'
import type { RevocationDigest } from './control-message.js'
import { type Revocation, revocationText } from './revocation.js'
import type { Revocations } from './revocations.js'

/** What a {@link RevocationSync} works with. */
export interface RevocationSyncContext {
  readonly node: string
  readonly revocations: Revocations
  readonly channel: Pick<ControlChannel, 'send' | 'tell'>
  /** Bytes of one message to other nodes. */
  readonly maxMessageBytes: number
  readonly onError: (error: unknown, text: string) => void
}

const ENVELOPE_BYTES = 128
/** Most revocations in a part. */
const MAX_PART = 500
/** A node that sends no part for this long is left, and the next one is asked. */
const SILENCE_MS = 5_000

/**
 * Gives nodes the revocations that they have missed. A node tells what it holds, in short, when it starts and when the
 * broker is back. Where that differs, both ask each other: the union is what counts. One node is asked at a time,
 * because the others usually hold the same.
 */
export class RevocationSync {
  readonly #context: RevocationSyncContext
  /** Nodes that hold something else, as they told it. */
  readonly #sources = new Map<string, RevocationDigest>()
  /** Nodes that are being sent all revocations. */
  readonly #served = new Set<string>()
  #source: string | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(context: RevocationSyncContext) {
    this.#context = context
  }

  /** A node tells what it holds. */
  compare(node: string, digest: RevocationDigest): void {
    if (digest.count === 0 || this.#isSame(digest)) return
    this.#sources.set(node, digest)
    if (this.#source === undefined) this.#askNext()
  }

  /** A part of a node's revocations has been taken. */
  received(node: string, isLast: boolean): void {
    if (node !== this.#source) return
    if (isLast) this.#askNext()
    else this.#waitForPart()
  }

  /** A node asks for all revocations. Later: the sink of a broker must not call it. */
  serve(node: string): void {
    if (this.#served.has(node)) return
    this.#served.add(node)
    setImmediate(() => {
      this.#sendAll(node)
        .catch((error: unknown) => this.#context.onError(error, 'revocations could not be sent to a node'))
        .finally(() => this.#served.delete(node))
    })
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#sources.clear()
  }

  #isSame({ count, hash }: RevocationDigest): boolean {
    const own = this.#context.revocations.digest()
    return own.count === count && own.hash === hash
  }

  #askNext(): void {
    clearTimeout(this.#timer)
    this.#source = undefined
    for (const [node, digest] of this.#sources) {
      this.#sources.delete(node)
      if (this.#isSame(digest)) continue
      this.#source = node
      const { channel, node: self } = this.#context
      setImmediate(() => channel.tell({ kind: 'want', node: self }, node))
      this.#waitForPart()
      return
    }
  }

  #waitForPart(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#askNext(), SILENCE_MS).unref()
  }

  /** One part at a time, so that many revocations do not fill the broker's queues. */
  async #sendAll(to: string): Promise<void> {
    const { node, channel, revocations, maxMessageBytes } = this.#context
    let part: Revocation[] = []
    let bytes = ENVELOPE_BYTES
    for (const revocation of revocations) {
      const textBytes = Buffer.byteLength(JSON.stringify(revocationText(revocation))) + 1
      if (part.length > 0 && (part.length >= MAX_PART || bytes + textBytes > maxMessageBytes)) {
        await channel.send({ kind: 'revoke', node, revocations: part, isLast: false }, to)
        part = []
        bytes = ENVELOPE_BYTES
      }
      part.push(revocation)
      bytes += textBytes
    }
    await channel.send({ kind: 'revoke', node, revocations: part, isLast: true }, to)
  }
}
