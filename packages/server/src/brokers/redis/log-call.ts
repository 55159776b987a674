import type { ChainableCommander, Redis } from 'ioredis'
import type { Accepted } from '../../ports/broker.js'
import type { LinkMessage } from '../remote/link.js'

/** The constant part of a link's calls. */
export interface LogCallOptions {
  /** SHA-1 of the script that appends. */
  readonly sha: string
  readonly keys: readonly string[]
  /** The arguments that are the same for all calls, without those about ids. */
  readonly constantArguments: readonly string[]
  /** Window and number of the message ids that the log remembers; `undefined`: none. */
  readonly idArguments: readonly [windowMs: string, maxIds: string] | undefined
}

/** Most messages of one call. A script blocks Redis, 3 to 6 us per message. */
const MAX_MESSAGES = 64
const MAX_BYTES = 262_144

/** One EVALSHA that appends messages to the log, in their order. */
export class LogCall {
  readonly #options: LogCallOptions
  readonly #sequences: number[] = []
  /** Envelope and id of each message, alternating. */
  readonly #messageArguments: (Buffer | string)[] = []
  #hasIds = false
  #byteCount = 0

  constructor(options: LogCallOptions) {
    this.#options = options
  }

  get hasRoom(): boolean {
    return this.#sequences.length < MAX_MESSAGES && this.#byteCount < MAX_BYTES
  }

  /** Bytes of all envelopes. */
  get byteCount(): number {
    return this.#byteCount
  }

  get sequences(): readonly number[] {
    return this.#sequences
  }

  add({ sequence, messageId }: LinkMessage, envelope: Buffer): void {
    const id = this.#options.idArguments === undefined ? '' : (messageId ?? '')
    this.#sequences.push(sequence)
    this.#messageArguments.push(envelope, id)
    this.#hasIds ||= id !== ''
    this.#byteCount += envelope.length
  }

  send(commander: Redis | ChainableCommander): unknown {
    const { sha, keys, constantArguments, idArguments } = this.#options
    const ids = (this.#hasIds ? idArguments : undefined) ?? ['', '']
    return commander.evalsha(sha, keys.length, ...keys, ...constantArguments, ...ids, ...this.#messageArguments)
  }

  /** Reads `<epoch> <first offset> [<offset of the first message with that id>,…]`. */
  accepted(answer: string, tell: (sequence: number, accepted: Accepted) => void): void {
    const [epoch = '', first, known] = answer.split(' ')
    const duplicates = known?.split(',')
    let offset = Number(first)
    for (const [index, sequence] of this.#sequences.entries()) {
      const before = duplicates?.[index] ?? ''
      const isDuplicate = before !== ''
      tell(sequence, { position: { epoch, offset: isDuplicate ? Number(before) : offset++ }, isDuplicate })
    }
  }
}
