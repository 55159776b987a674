import { randomBytes } from 'node:crypto'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import { LogCalls } from './log-call.js'
import { appendScript } from './log-scripts.js'

/** Options of a {@link RedisLog}; as in {@link ServerOptions}. */
export interface RedisLogOptions extends HistoryOptions {
  readonly brokerNamespace: string
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
}

const EPOCH_BYTES = 4

/** Names and arguments of the log at a Redis; the same for all links of a node. */
export class RedisLog {
  /** `<namespace>/log`. In a cluster it ends with braces that put all keys of the log into one slot. */
  readonly channel: string
  readonly stream: string
  /** A hash: where the log ends, and its epoch. */
  readonly state: string
  /** In the order of KEYS in the scripts. */
  readonly keys: readonly string[]
  readonly #publishCommand: 'PUBLISH' | 'SPUBLISH'
  readonly #options: RedisLogOptions

  /** @returns `undefined` when nothing is logged */
  static of(options: RedisLogOptions, isCluster: boolean): RedisLog | undefined {
    return hasHistory(options) ? new RedisLog(options, isCluster) : undefined
  }

  private constructor(options: RedisLogOptions, isCluster: boolean) {
    const { brokerNamespace: namespace } = options
    const name = isCluster ? `${namespace}/log:{${namespace}}` : `${namespace}/log`
    this.#options = options
    this.channel = name
    this.stream = name
    this.state = `${name}/state`
    this.keys = [name, this.state, `${name}/ids`, `${name}/ids-before`, `${name}/checkpoints`]
    this.#publishCommand = isCluster ? 'SPUBLISH' : 'PUBLISH'
  }

  /**
   * The first arguments of both scripts.
   * @param run The run id of the server; see the scripts.
   */
  leadArguments(run: string): readonly string[] {
    return [randomBytes(EPOCH_BYTES).toString('hex'), run, this.channel, this.#publishCommand]
  }

  /** Makes the calls of one link. */
  calls(run: string): LogCalls {
    const { history, historyMaxMessages, historyMaxBytes, dedupeWindowMs, dedupeMaxIds } = this.#options
    return new LogCalls({
      sha: appendScript.sha,
      keys: this.keys,
      leadArguments: this.leadArguments(run),
      maxMessages: historyMaxMessages,
      maxBytes: historyMaxBytes,
      maxAgeMs: history.maxAgeMs,
      dedupeWindowMs,
      dedupeMaxIds,
    })
  }
}
