import type { JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { WebMQError } from 'webmq-client/protocol'
import { newEpoch, type RemoteBrokerOptions } from 'webmq-server/brokers'
import { explained, JETSTREAM_REASONS, type JetStreamClient, reasonOf } from './jetstream-errors.js'
import { RestartMark } from './restart-mark.js'
import { describe, descriptionOf, generationTextOf, type StreamDescription } from './stream-description.js'
import { fingerprintOfStored, nanosecondsOf } from './stream-message.js'
import { disjointSubjects, type NatsSubjects, subscriptionPatternsOf } from './subjects.js'

export interface LogStreamOptions extends RemoteBrokerOptions {
  /**
   * Servers of a cluster that store the stream. `undefined`: an existing stream stays as it is, a new one is on one
   * server.
   */
  readonly replicaCount: number | undefined
}

export interface LogState extends Omit<StreamDescription, 'name' | 'generationText'> {
  /** Sequence of the oldest message; `lastSequence + 1` if there is none. */
  readonly firstSequence: number
  readonly lastSequence: number
  /** Fingerprint of the message that has it, also when the stream no longer has that message; 0: unknown. */
  readonly lastFingerprint: number
  /** Sequences in between that somebody has deleted. */
  readonly deleted: ReadonlySet<number>
}

/** The fields that a node sets. */
type LogConfig = Parameters<JetStreamManager['streams']['add']>[0]

const NS_PER_MS = 1_000_000
/** JetStream's minimum. */
const MIN_AGE_MS = 100
/** With a majority of them, the others keep what one server has lost. */
const MIN_SAFE_REPLICAS = 3
/** Another node may create or change the stream between two of our requests. */
const MAX_TRIES = 4
/** Another node has made or removed the stream meanwhile. A new one may overlap with that of the same name (nats-server 2.9). */
const OVERTAKEN: readonly unknown[] = [
  JETSTREAM_REASONS.nameInUse,
  JETSTREAM_REASONS.streamNotFound,
  JETSTREAM_REASONS.subjectsOverlap,
]

/** The stream that is the log of a namespace. Created if missing, and adjusted to the options. */
export class LogStream {
  readonly name: string
  readonly #client: JetStreamClient
  readonly #subjects: NatsSubjects
  readonly #options: LogStreamOptions
  readonly #mark: RestartMark
  /** A mark that the description will name. */
  #nextRun: string | undefined

  constructor(client: JetStreamClient, options: LogStreamOptions) {
    this.name = `${options.brokerNamespace}-log`
    this.#client = client
    this.#subjects = client.subjects
    this.#options = options
    this.#mark = new RestartMark(client, this.name)
  }

  /**
   * Creates or adjusts the stream; resolves to its state.
   * @throws {WebMQError} `E_BROKER_REFUSED` if it cannot be created, or if an existing stream cannot be a log.
   */
  async open(): Promise<LogState> {
    for (let leftCount = MAX_TRIES; ; leftCount--) {
      try {
        return await this.#fit(await this.#find())
      } catch (cause) {
        const reason = reasonOf(cause, this.#client.jetStream)
        if (!OVERTAKEN.includes(reason) || leftCount === 1) throw explained(cause, this.#client)
      }
    }
  }

  async state(): Promise<LogState> {
    try {
      return stateOf(await this.#client.manager.streams.info(this.name))
    } catch (cause) {
      throw explained(cause, this.#client)
    }
  }

  /** As {@link SharedLog.risk}. No client is told the server's `sync_interval`. */
  async risk(): Promise<string | undefined> {
    const count = (await this.#find())?.config.num_replicas ?? MIN_SAFE_REPLICAS
    const { refusal } = this.#mark
    if (refusal !== undefined) return `no restart of JetStream is seen that no node outlives: ${refusal}`
    if (count >= MIN_SAFE_REPLICAS) return undefined
    const replicas = count === 1 ? 'one replica' : `${count} replicas`
    return `the stream ${this.name} has ${replicas}: unless sync_interval is always, a server whose machine fails loses what it has not written to its disk, by default of the last two minutes`
  }

  get rules(): string {
    return this.#options.history.fingerprint
  }

  /** Sequence of the oldest message that a node reads when it does not continue from a position. */
  oldestRead({ firstSequence, lastSequence }: LogState): number {
    return Math.max(firstSequence, lastSequence + 1 - this.#options.historyMaxMessages)
  }

  /** Whether JetStream was restarted since a node has last said that the stream is whole. */
  async isNewRun({ run }: LogState): Promise<boolean> {
    const serverRun = this.#serverRun
    return serverRun === undefined ? !(await this.#mark.isSet(run)) : serverRun !== run
  }

  /** Whether the next restart will be seen. Otherwise each start of a node would be taken for one. */
  async seesRestarts(): Promise<boolean> {
    this.#nextRun ??= this.#serverRun ?? (await this.#mark.set())
    return this.#nextRun !== ''
  }

  /** Begins another epoch, so that old positions are not mistaken for new ones. */
  async beginGeneration(generation: number, rules?: string): Promise<void> {
    await this.#describe(
      (found, run) => (found.generation < generation ? generationTextOf(generation, run) : found.generationText),
      rules,
    )
  }

  /** As {@link LinkLog.unmark}. */
  async unmark(): Promise<void> {
    try {
      const found = await this.#find()
      const described = found && descriptionOf(found)
      if (described === undefined || described.rules === '') return
      const description = describe(this.#subjects.prefix, { ...described, rules: '' })
      await this.#client.manager.streams.update(this.name, { description })
    } catch (cause) {
      throw explained(cause, this.#client)
    }
  }

  /** A node has seen that the stream is as it was. */
  async confirmRun(): Promise<void> {
    await this.#describe(({ generationText }) => generationText)
  }

  async #describe(textOf: (found: StreamDescription, run: string) => string, rules?: string): Promise<void> {
    try {
      const run = this.#serverRun ?? this.#nextRun ?? (await this.#mark.set())
      this.#nextRun = undefined
      const found = await this.#find()
      if (found === undefined) return
      const former = descriptionOf(found)
      const changed = { name: former.name, generationText: textOf(former, run), rules: rules ?? former.rules, run }
      const description = describe(this.#subjects.prefix, changed)
      if (description === found.config.description) return
      await this.#client.manager.streams.update(this.name, { description })
      if (this.#serverRun === undefined && former.run !== '') this.#mark.remove(former.run)
    } catch (cause) {
      throw explained(cause, this.#client)
    }
  }

  /** A server without a cluster has another id in each run. */
  get #serverRun(): string | undefined {
    const { info } = this.#client.connection
    return info?.jetstream === true && info.cluster === undefined ? info.server_id : undefined
  }

  async #fit(found: StreamInfo | undefined): Promise<LogState> {
    const { streams } = this.#client.manager
    if (found === undefined) {
      const created = stateOf(await streams.add(this.#created()))
      if (created.run !== '') return created
      await this.confirmRun()
      return await this.state()
    }
    const changed = this.#changed(found.config)
    return stateOf(changed === undefined ? found : await streams.update(this.name, changed), found)
  }

  async #find(): Promise<StreamInfo | undefined> {
    try {
      return await this.#client.manager.streams.info(this.name, { deleted_details: true })
    } catch (cause) {
      if (reasonOf(cause, this.#client.jetStream) === JETSTREAM_REASONS.streamNotFound) return undefined
      throw cause
    }
  }

  #created(): LogConfig {
    const { RetentionPolicy, StorageType } = this.#client.jetStream
    return {
      name: this.name,
      description: describe(this.#subjects.prefix, {
        name: newEpoch(),
        rules: this.rules,
        run: this.#serverRun ?? '',
      }),
      subjects: this.#wantedSubjects([]),
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      max_consumers: -1,
      max_msg_size: -1,
      num_replicas: this.#options.replicaCount ?? 1,
      ...this.#limits(),
    }
  }

  /** The changes to make; `undefined` without any. */
  #changed(config: StreamConfig): Partial<LogConfig> | undefined {
    const { RetentionPolicy, StorageType } = this.#client.jetStream
    if (config.storage !== StorageType.File)
      throw unfit(this.name, `has the storage ${config.storage}, which a restart empties`)
    if (config.retention !== RetentionPolicy.Limits) throw unfit(this.name, `has the retention ${config.retention}`)
    if (config.mirror !== undefined || config.sources !== undefined) throw unfit(this.name, 'copies another stream')
    const { replicaCount } = this.#options
    const current = config.subjects ?? []
    const wanted: Partial<LogConfig> = {
      // Subjects are only added: nodes with other rules keep their log. An operator may remove subjects.
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
    const { history, historyMaxMessages, historyMaxBytes, dedupeWindowMs, dedupeMaxIds } = this.#options
    const maxAgeMs = history.maxAgeMs === undefined ? undefined : Math.max(MIN_AGE_MS, history.maxAgeMs)
    const windowMs = Math.min(Math.max(MIN_AGE_MS, dedupeWindowMs), maxAgeMs ?? Number.POSITIVE_INFINITY)
    return {
      discard: this.#client.jetStream.DiscardPolicy.Old,
      // A restarted JetStream knows the ids of the messages that the stream still has, and no others.
      max_msgs: Math.max(historyMaxMessages, dedupeWindowMs === 0 ? 0 : dedupeMaxIds),
      max_bytes: historyMaxBytes,
      max_msgs_per_subject: -1,
      max_age: (maxAgeMs ?? 0) * NS_PER_MS,
      duplicate_window: windowMs * NS_PER_MS,
    }
  }

  /** The subjects of the rules, the one for notes about the log, and those that the stream already has. */
  #wantedSubjects(current: readonly string[]): string[] {
    const patterns = this.#options.history.patterns.flatMap(subscriptionPatternsOf)
    return disjointSubjects([
      ...current,
      this.#subjects.ofLog,
      ...patterns.map((pattern) => this.#subjects.ofSubscription(pattern)),
    ])
  }
}

function unfit(name: string, reason: string): WebMQError {
  const detail = `the stream ${name} ${reason}; delete it (nats stream rm ${name}) so that a node creates it again, or use another --broker-namespace`
  return new WebMQError('E_BROKER_REFUSED', { detail })
}

/** @param details Lists the deleted messages, which the answer to an update does not. */
function stateOf(info: StreamInfo, details?: StreamInfo): LogState {
  const { state } = info
  const { epoch, generation, run, rules } = descriptionOf(info)
  const lastTime = state.last_seq === 0 ? undefined : nanosecondsOf(state.last_ts)
  return {
    epoch,
    generation,
    run,
    rules,
    firstSequence: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
    lastSequence: state.last_seq,
    lastFingerprint: lastTime === undefined ? 0 : fingerprintOfStored(lastTime),
    deleted: new Set(details?.state.deleted),
  }
}
