import type { JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { WebMQError } from 'webmq-client/protocol'
import type { HistoryRules } from '../../ports/history-rules.js'
import { explained, JETSTREAM_REASONS, type JetStreamPlace, reasonOf } from './jetstream-errors.js'
import { disjointSubjects } from './stream-subjects.js'
import { type NatsSubjects, reachesOf } from './subjects.js'

/** What the log of a system of nodes is to be like. */
export interface LogStreamOptions {
  readonly history: HistoryRules
  readonly historyMaxMessages: number
  /** Of the stream, with what it needs beside payloads. */
  readonly historyMaxBytes: number
  /** 0: ids are not looked at. */
  readonly dedupeWindowMs: number
  /** Servers of a cluster that have the stream; `undefined` leaves it as it is, and makes it on one. */
  readonly replicaCount: number | undefined
}

/** A stream at a moment. */
export interface LogState {
  /** Another one for another stream of the same name, and once a stream is known to have lost its end. */
  readonly epoch: string
  /** How often it has. */
  readonly generation: number
  /** Of the oldest message; one more than the last when there is none. */
  readonly firstSequence: number
  readonly lastSequence: number
  /** Messages in between that somebody has deleted. */
  readonly deleted: ReadonlySet<number>
}

/** The fields that a node sets. */
type LogConfig = Parameters<JetStreamManager['streams']['add']>[0]

const NS_PER_MS = 1_000_000
/** What JetStream allows at least. */
const MIN_AGE_MS = 100
const GENERATION = /generation (\d+)$/
/** Another node may make or change the stream between two of our requests. */
const MAX_TRIES = 4

/** The stream that is the log of a namespace: made when it is not there, and fitted to the options. */
export class LogStream {
  readonly name: string
  readonly #manager: JetStreamManager
  readonly #place: () => JetStreamPlace
  readonly #subjects: NatsSubjects
  readonly #options: LogStreamOptions

  /** @param place For errors. */
  constructor(
    manager: JetStreamManager,
    place: () => JetStreamPlace,
    namespace: string,
    subjects: NatsSubjects,
    options: LogStreamOptions,
  ) {
    this.name = `${namespace}-log`
    this.#manager = manager
    this.#place = place
    this.#subjects = subjects
    this.#options = options
  }

  /**
   * Its state, once it is there and as it should be.
   * @throws {WebMQError} `E_BROKER_REFUSED` when it cannot be made, or is none that could be a log.
   */
  async open(): Promise<LogState> {
    for (let leftCount = MAX_TRIES; ; leftCount--) {
      try {
        return await this.#fit(await this.#find())
      } catch (cause) {
        const reason = reasonOf(cause, this.#place().jetStream)
        const isOvertaken = reason === JETSTREAM_REASONS.nameInUse || reason === JETSTREAM_REASONS.streamNotFound
        if (!isOvertaken || leftCount === 1) throw explained(cause, this.#place())
      }
    }
  }

  /** Says that the stream is not what it was, so that no place of before is taken for one of now. */
  async beginGeneration(generation: number): Promise<void> {
    try {
      const found = await this.#find()
      if (found === undefined || generationOf(found.config) >= generation) return
      const description = `${this.#description}, generation ${generation}`
      await this.#manager.streams.update(this.name, { description })
    } catch (cause) {
      throw explained(cause, this.#place())
    }
  }

  async #fit(found: StreamInfo | undefined): Promise<LogState> {
    const { streams } = this.#manager
    if (found === undefined) return stateOf(await streams.add(this.#created()))
    const changed = this.#changed(found.config)
    return stateOf(changed === undefined ? found : await streams.update(this.name, changed), found)
  }

  get #description(): string {
    return `WebMQ: what was published under ${this.#subjects.prefix}`
  }

  async #find(): Promise<StreamInfo | undefined> {
    try {
      return await this.#manager.streams.info(this.name, { deleted_details: true })
    } catch (cause) {
      if (reasonOf(cause, this.#place().jetStream) === JETSTREAM_REASONS.streamNotFound) return undefined
      throw cause
    }
  }

  #created(): LogConfig {
    const { RetentionPolicy, StorageType } = this.#place().jetStream
    return {
      name: this.name,
      description: this.#description,
      subjects: this.#wantedSubjects([]),
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      max_consumers: -1,
      max_msg_size: -1,
      num_replicas: this.#options.replicaCount ?? 1,
      ...this.#limits(),
    }
  }

  /** What to change; `undefined` when it may stay as it is. */
  #changed(config: StreamConfig): Partial<LogConfig> | undefined {
    const { RetentionPolicy, StorageType } = this.#place().jetStream
    if (config.storage !== StorageType.File)
      throw unfit(this.name, `has the storage ${config.storage}, which a restart empties`)
    if (config.retention !== RetentionPolicy.Limits) throw unfit(this.name, `has the retention ${config.retention}`)
    if (config.mirror !== undefined || config.sources !== undefined) throw unfit(this.name, 'copies another stream')
    const { replicaCount } = this.#options
    const current = config.subjects ?? []
    const wanted: Partial<LogConfig> = {
      // Nodes whose rules are older or newer go on: what they log stays logged, until somebody edits the stream.
      subjects: this.#wantedSubjects(current),
      ...(replicaCount === undefined ? {} : { num_replicas: replicaCount }),
      ...this.#limits(),
    }
    const isSame = Object.entries(wanted).every(([name, value]) =>
      name === 'subjects' ? String(value) === String([...current].sort()) : config[name as keyof LogConfig] === value,
    )
    return isSame ? undefined : wanted
  }

  #limits(): Partial<LogConfig> {
    const { history, historyMaxMessages, historyMaxBytes, dedupeWindowMs } = this.#options
    const maxAgeMs = history.maxAgeMs === undefined ? undefined : Math.max(MIN_AGE_MS, history.maxAgeMs)
    const windowMs = Math.min(Math.max(MIN_AGE_MS, dedupeWindowMs), maxAgeMs ?? Number.POSITIVE_INFINITY)
    return {
      discard: this.#place().jetStream.DiscardPolicy.Old,
      max_msgs: historyMaxMessages,
      max_bytes: historyMaxBytes,
      max_msgs_per_subject: -1,
      max_age: (maxAgeMs ?? 0) * NS_PER_MS,
      duplicate_window: windowMs * NS_PER_MS,
    }
  }

  /** Those of the rules, that of the system's own words, and what the stream has already. */
  #wantedSubjects(current: readonly string[]): string[] {
    const reaches = this.#options.history.patterns.flatMap(reachesOf)
    return disjointSubjects([
      ...current,
      this.#subjects.ofLog,
      ...reaches.map((reach) => this.#subjects.ofReach(reach)),
    ])
  }
}

function unfit(name: string, reason: string): WebMQError {
  const detail = `the stream ${name} ${reason}; delete it (nats stream rm ${name}), and it is made as it should be, or take another --broker-namespace`
  return new WebMQError('E_BROKER_REFUSED', { detail })
}

/** @param details Has the messages that were deleted, where the answer to an update has not. */
function stateOf({ config, created, state }: StreamInfo, details?: StreamInfo): LogState {
  const generation = generationOf(config)
  return {
    epoch: epochOf(created, generation),
    generation,
    firstSequence: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
    lastSequence: state.last_seq,
    deleted: new Set(details?.state.deleted),
  }
}

/** When a stream was created, to the nanosecond, tells it from every other of its name. */
function epochOf(created: string, generation: number): string {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(created) ?? []
  const ms = Date.parse(`${seconds}Z`)
  if (Number.isNaN(ms)) throw new Error(`JetStream says that the stream was created at ${JSON.stringify(created)}`)
  const nanoseconds = BigInt(ms) * BigInt(NS_PER_MS) + BigInt(fraction.padEnd(9, '0'))
  return nanoseconds.toString(36) + (generation === 0 ? '' : `.${generation}`)
}

function generationOf({ description }: StreamConfig): number {
  return Number(GENERATION.exec(description ?? '')?.[1] ?? 0)
}
