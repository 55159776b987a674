import { createHash, randomBytes } from 'node:crypto'
import type { ChainableCommander, Redis } from 'ioredis'
import { hasHistory, type LinkMessage, type RemoteBrokerOptions } from 'webmq-server/brokers'
import type { LogPlace } from 'webmq-server/ports'
import { APPEND } from './append.lua.js'
import { OPEN } from './open.lua.js'
import { PRELUDE } from './prelude.lua.js'
import { publishScriptOf } from './publish.lua.js'
import type { SubscriptionKind } from './subscriber.js'

const EPOCH_BYTES = 4

export const appendScript = scriptOf(APPEND)
export const openScript = scriptOf(OPEN)

/** @returns The `sha` is SHA-1, for EVALSHA. */
function scriptOf(text: string) {
  const source = `${PRELUDE}${text}`.trim()
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** Names and arguments of the log at a Redis; the same for all links of a node. */
export class RedisLog {
  /** `<namespace>/log`. In a cluster it ends with braces that put all keys of the log into one slot. */
  readonly channel: string
  readonly channelKind: SubscriptionKind
  readonly stream: string
  /** A hash: where the log ends, and its epoch. */
  readonly state: string
  /** In the order of KEYS in the scripts. */
  readonly keys: readonly string[]
  /** Without history a node only hears what others log. */
  readonly isFollowed: boolean
  /** A link of this node has brought all that was logged until then, by `performance.now()`. */
  followedUntilMs: number | undefined
  /** The id of the entry that a link of this node has read last. */
  readonly #last = { offset: 0, timeMs: 0 }
  readonly #publishCommand: 'PUBLISH' | 'SPUBLISH'
  /** Window and number of the message ids that the log remembers; `undefined`: none. */
  readonly idArguments: readonly [windowMs: string, maxIds: string] | undefined
  readonly #options: RemoteBrokerOptions

  constructor(options: RemoteBrokerOptions, isCluster: boolean) {
    this.isFollowed = hasHistory(options)
    const { brokerNamespace: namespace, dedupeWindowMs, dedupeMaxIds } = options
    if (dedupeWindowMs > 0 && dedupeMaxIds > 0) this.idArguments = [String(dedupeWindowMs), String(dedupeMaxIds)]
    const name = isCluster ? `${namespace}/log:{${namespace}}` : `${namespace}/log`
    this.#options = options
    this.channel = name
    this.channelKind = isCluster ? 'shard' : 'channel'
    this.stream = name
    this.state = `${name}/state`
    this.keys = [name, this.state, `${name}/ids`, `${name}/ids-before`, `${name}/checkpoints`]
    this.#publishCommand = isCluster ? 'SPUBLISH' : 'PUBLISH'
  }

  /** The first arguments of both scripts. */
  get leadArguments(): readonly string[] {
    return [randomBytes(EPOCH_BYTES).toString('hex'), this.channel, this.#publishCommand]
  }

  /** The script with which other programs publish. */
  get publishScript(): string {
    const bounds = [...this.#bounds, ...(this.idArguments ?? ['', ''])]
    return publishScriptOf(this.channel, this.#publishCommand, bounds)
  }

  get rules(): string {
    return this.#options.history.fingerprint
  }

  noteRead(offset: number, timeMs: number): void {
    this.#last.offset = offset
    this.#last.timeMs = timeMs
  }

  /** The time in the id of the entry at this offset, as text; '' if it is not the one that was read last. */
  timeAt(offset: number | undefined): string {
    return offset === this.#last.offset && offset !== 0 ? String(this.#last.timeMs) : ''
  }

  logs(key: string): boolean {
    return this.isFollowed && this.#options.history.ruleOf(key) !== undefined
  }

  /**
   * Makes the calls of one link.
   * @param term In which the link has opened the log; see the scripts.
   */
  calls(term: string): () => LogCall {
    const leadArguments = [...this.leadArguments, term, ...this.#bounds]
    return () => new LogCall(this, leadArguments)
  }

  get #bounds(): readonly string[] {
    const { history, historyMaxMessages, historyMaxBytes } = this.#options
    return [historyMaxMessages, historyMaxBytes, history.maxAgeMs ?? ''].map(String)
  }
}

/** Most messages of one call. A script blocks Redis, 3 to 6 us per message. */
const MAX_MESSAGES = 64
const MAX_BYTES = 262_144

/** One EVALSHA that appends messages to the log, in their order. */
export class LogCall {
  readonly #log: RedisLog
  readonly #leadArguments: readonly string[]
  readonly sequences: number[] = []
  /** Envelope and id of each message, alternating. */
  readonly #messageArguments: (Buffer | string)[] = []
  #hasIds = false
  byteCount = 0

  /** @param leadArguments Those that all calls of a link begin with. */
  constructor(log: RedisLog, leadArguments: readonly string[]) {
    this.#log = log
    this.#leadArguments = leadArguments
  }

  get hasRoom(): boolean {
    return this.sequences.length < MAX_MESSAGES && this.byteCount < MAX_BYTES
  }

  add({ sequence, messageId }: LinkMessage, envelope: Buffer): void {
    const id = this.#log.idArguments === undefined ? '' : (messageId ?? '')
    this.sequences.push(sequence)
    this.#messageArguments.push(envelope, id)
    this.#hasIds ||= id !== ''
    this.byteCount += envelope.length
  }

  send(commander: Redis | ChainableCommander): unknown {
    const { keys, idArguments } = this.#log
    const ids = (this.#hasIds ? idArguments : undefined) ?? ['', '']
    return commander.evalsha(
      appendScript.sha,
      keys.length,
      ...keys,
      ...this.#leadArguments,
      ...ids,
      ...this.#messageArguments,
    )
  }

  /** Reads `<epoch> <first offset> [<offset of the first message with that id>,…]`. */
  accepted(answer: string, reports: { confirmed(sequence: number, duplicateOf?: LogPlace): void }): void {
    const [epoch = '', , known] = answer.split(' ')
    const duplicates = known?.split(',')
    for (const [index, sequence] of this.sequences.entries()) {
      const first = duplicates?.[index] ?? ''
      reports.confirmed(sequence, first === '' ? undefined : { epoch, offset: Number(first) })
    }
  }
}
