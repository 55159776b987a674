import { createHash, randomBytes } from 'node:crypto'
import { hasHistory } from '../log/history-log.js'
import type { RemoteBrokerOptions } from '../remote/options.js'
import { APPEND } from './append.lua.js'
import { OPEN } from './open.lua.js'
import { PRELUDE } from './prelude.lua.js'
import { publishScriptOf } from './publish.lua.js'
import { LogCall } from './publisher.js'

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
  readonly stream: string
  /** A hash: where the log ends, and its epoch. */
  readonly state: string
  /** In the order of KEYS in the scripts. */
  readonly keys: readonly string[]
  /** Without history a node only hears what others log. */
  readonly isFollowed: boolean
  /** When a link of this node last stopped to follow the log, by `performance.now()`. */
  followedUntilMs: number | undefined
  /** The id of the entry that a link of this node has read last. */
  readonly #last = { offset: 0, timeMs: 0 }
  readonly #publishCommand: 'PUBLISH' | 'SPUBLISH'
  readonly #options: RemoteBrokerOptions

  constructor(options: RemoteBrokerOptions, isCluster: boolean) {
    this.isFollowed = hasHistory(options)
    const { brokerNamespace: namespace } = options
    const name = isCluster ? `${namespace}/log:{${namespace}}` : `${namespace}/log`
    this.#options = options
    this.channel = name
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
    const bounds = [...this.#bounds, ...(this.#idArguments ?? ['', ''])]
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
   * @param reign In which the link has opened the log; see the scripts.
   */
  calls(reign: string): () => LogCall {
    const options = {
      sha: appendScript.sha,
      keys: this.keys,
      constantArguments: [...this.leadArguments, reign, ...this.#bounds],
      idArguments: this.#idArguments,
    }
    return () => new LogCall(options)
  }

  get #idArguments(): readonly [windowMs: string, maxIds: string] | undefined {
    const { dedupeWindowMs, dedupeMaxIds } = this.#options
    return dedupeWindowMs > 0 && dedupeMaxIds > 0 ? [String(dedupeWindowMs), String(dedupeMaxIds)] : undefined
  }

  get #bounds(): readonly string[] {
    const { history, historyMaxMessages, historyMaxBytes } = this.#options
    return [historyMaxMessages, historyMaxBytes, history.maxAgeMs ?? ''].map(String)
  }
}
