import { type ApiError, invalidConfig, REFUSALS, sequenceNotFound } from './api-errors.js'
import type { ConsumerConfig } from './consumer.js'
import type { ModelCore, ModelSubscriber } from './core.js'
import { Lane } from './lane.js'
import { type NatsMessage, NO_BYTES, quoted } from './protocol.js'
import { PullConsumer, type PullRequest } from './pull-consumer.js'
import { PushConsumer } from './push-consumer.js'
import { RunningStream } from './running-stream.js'
import { ModelStream, type StreamConfig, type StreamSnapshot, timeText } from './stream.js'
import { isOverlap } from './subjects.js'

/** `gone`: nobody answers, and clients are told so. `silent`: what is sent to it is lost, as without a leader. */
export type JetStreamPresence = 'here' | 'gone' | 'silent'

/** What stays when the server ends. */
export type JetStreamSnapshot = readonly {
  readonly stream: StreamSnapshot
  readonly durables: readonly ConsumerConfig[]
}[]

type Answer = Readonly<Record<string, unknown>> | { readonly error: ApiError }
type Request = Readonly<Record<string, unknown>>

const API = '$JS.API.'
const FLOW = '$JS.FC.'
const NS_PER_MS = 1_000_000n
const DEFAULT_WINDOW_NS = 120_000_000_000
/** The word of an answer's type that is not the verb's. */
const TYPE = 'io.nats.jetstream.api.v1.'

/** JetStream: its streams, and the API. */
export class JetStreamModel {
  readonly #core: ModelCore
  readonly #streams = new Map<string, RunningStream>()
  readonly #requests: Lane
  readonly #answers: Lane
  readonly #subscribers: readonly ModelSubscriber[]
  #kept: JetStreamSnapshot = []
  #isRunning = false
  #isSilent = false
  #consumerCount = 0

  constructor(core: ModelCore) {
    this.#core = core
    this.#requests = new Lane(() => core.options.delayMs('answer'))
    this.#answers = new Lane(() => core.options.delayMs('answer'))
    this.#subscribers = [
      { pattern: `${API}>`, take: (message) => this.#asked(message) },
      { pattern: `${FLOW}>`, take: ({ subject }) => this.#flowAnswered(subject) },
    ]
  }

  set presence(presence: JetStreamPresence) {
    if (presence === 'gone') this.stop(0)
    else this.start()
    this.#isSilent = presence === 'silent'
    if (!this.#isSilent) for (const running of this.#streams.values()) running.wake()
  }

  /** `undefined` while there is none. */
  configOf(stream: string): StreamConfig | undefined {
    const kept = this.#kept.find(({ stream: { config } }) => config.name === stream)?.stream.config
    return this.#isRunning ? this.#streams.get(stream)?.stream.config : kept
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#isSilent = false
    for (const subscriber of this.#subscribers) this.#core.subscribers.add(subscriber)
    for (const { stream, durables } of this.#kept) {
      const running = this.#run(ModelStream.restored(stream))
      for (const config of durables) running.addConsumer(config.durable_name ?? '', config)
    }
  }

  /** @param lostCount The newest messages of each stream that it will not find again. */
  stop(lostCount: number): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    for (const subscriber of this.#subscribers) this.#core.subscribers.delete(subscriber)
    this.#requests.clear()
    this.#answers.clear()
    for (const { stream } of this.#streams.values()) stream.recover(lostCount)
    this.#kept = this.#snapshot()
    for (const running of this.#streams.values()) running.stop()
    this.#streams.clear()
  }

  snapshot(): JetStreamSnapshot {
    return this.#isRunning ? this.#snapshot() : this.#kept
  }

  restore(snapshot: JetStreamSnapshot): void {
    this.#kept = snapshot
  }

  #snapshot(): JetStreamSnapshot {
    return [...this.#streams.values()]
      .filter(({ stream }) => stream.config.storage === 'file')
      .map(({ stream, consumers }) => ({
        stream: stream.snapshot(),
        durables: [...consumers.values()].filter(({ isDurable }) => isDurable).map(({ config }) => config),
      }))
  }

  #run(stream: ModelStream): RunningStream {
    const running = new RunningStream(stream, this.#core, () => this.#isSilent)
    this.#streams.set(stream.config.name, running)
    return running
  }

  #flowAnswered(subject: string): void {
    const [, , stream = '', name = ''] = subject.split('.')
    const consumer = this.#streams.get(stream)?.consumers.get(name)
    if (consumer instanceof PushConsumer) consumer.answered(subject)
  }

  #asked(message: NatsMessage): void {
    if (this.#isSilent) return
    this.#requests.push(() => {
      if (this.#isSilent) return
      const answer = this.#answer(message)
      if (answer === undefined || message.reply === '') return
      const payload = Buffer.from(JSON.stringify(answer))
      const sent = { subject: message.reply, reply: '', headers: NO_BYTES, payload }
      this.#answers.push(() => this.#core.publish(sent))
    })
  }

  #answer({ subject, reply, payload }: NatsMessage): Answer | undefined {
    const words = subject.slice(API.length).split('.')
    const request = (payload.length === 0 ? {} : JSON.parse(payload.toString())) as Request
    if (subject.startsWith(`${API}CONSUMER.MSG.NEXT.`)) {
      const [, , , stream = '', name = ''] = words
      const consumer = this.#streams.get(stream)?.consumers.get(name)
      if (consumer instanceof PullConsumer) consumer.request(reply, request as PullRequest)
      // The server says nothing either.
      return undefined
    }
    const verb = subject.startsWith(`${API}STREAM.MSG.DELETE.`) ? 'STREAM.MSG.DELETE' : words.slice(0, 2).join('.')
    const [name = '', second = ''] = words.slice(verb.split('.').length)
    const answer = this.#verb(verb, name, second, request)
    return { type: `${TYPE}${verb.toLowerCase().replaceAll('.', '_')}_response`, ...answer }
  }

  #verb(verb: string, name: string, second: string, request: Request): Answer {
    if (verb === 'STREAM.CREATE') return this.#createStream(request as Partial<StreamConfig> & { name: string })
    const running = this.#streams.get(name)
    if (running === undefined) return { error: REFUSALS.streamNotFound }
    const { stream, consumers } = running
    switch (verb) {
      case 'STREAM.INFO':
        return infoOf(running, request.deleted_details === true)
      case 'STREAM.UPDATE':
        return this.#updateStream(running, request as Partial<StreamConfig> & { name: string })
      case 'STREAM.DELETE':
        running.stop()
        this.#streams.delete(name)
        return { success: true }
      case 'STREAM.MSG.DELETE':
        return stream.remove(Number(request.seq)) ? { success: true } : { error: sequenceNotFound(Number(request.seq)) }
      case 'CONSUMER.CREATE':
        return this.#createConsumer(running, second, request.config as ConsumerConfig)
      case 'CONSUMER.INFO':
        return consumers.get(second)?.info() ?? { error: REFUSALS.consumerNotFound }
      case 'CONSUMER.DELETE':
        return running.deleteConsumer(second) ? { success: true } : { error: REFUSALS.consumerNotFound }
      case 'CONSUMER.NAMES':
        return { total: consumers.size, offset: 0, limit: 1_024, consumers: [...consumers.keys()] }
      default:
        throw new Error(`the model does not answer ${verb}`)
    }
  }

  #createStream(wanted: Partial<StreamConfig> & { readonly name: string }): Answer {
    const config = completed(wanted)
    const same = this.#streams.get(config.name)
    if (same !== undefined)
      return JSON.stringify(same.stream.config) === JSON.stringify(config)
        ? { ...infoOf(same, false), did_create: false }
        : { error: REFUSALS.nameInUse }
    const error = this.#defectOf(config)
    if (error !== undefined) return { error }
    const running = this.#run(new ModelStream(config, BigInt(Date.now()) * NS_PER_MS))
    return { ...infoOf(running, false), did_create: true }
  }

  #updateStream(running: RunningStream, wanted: Partial<StreamConfig> & { readonly name: string }): Answer {
    const config = completed(wanted)
    const error = this.#defectOf(config)
    if (error !== undefined) return { error }
    running.update(config)
    return infoOf(running, false)
  }

  #defectOf({ name, subjects, num_replicas, max_age, duplicate_window }: StreamConfig): ApiError | undefined {
    for (const [at, one] of subjects.entries()) {
      const other = subjects.slice(at + 1).find((each) => isOverlap(one, each))
      if (other !== undefined) return invalidConfig(`subject ${quoted(one)} overlaps with ${quoted(other)}`)
    }
    if (max_age > 0 && duplicate_window > max_age)
      return invalidConfig('duplicates window can not be larger then max age')
    if (num_replicas > 1 && !this.#core.options.hasCluster) return REFUSALS.tooManyReplicas
    for (const { stream } of this.#streams.values()) {
      const isOther = stream.config.name !== name
      if (isOther && stream.config.subjects.some((one) => subjects.some((other) => isOverlap(one, other))))
        return REFUSALS.subjectsOverlap
    }
    return undefined
  }

  #createConsumer(running: RunningStream, given: string, config: ConsumerConfig): Answer {
    const name = given || (config.durable_name ?? this.#nextName())
    const same = running.consumers.get(name)
    if (same === undefined) return running.addConsumer(name, config).firstInfo
    return JSON.stringify(same.config) === JSON.stringify(config) ? same.info() : { error: REFUSALS.consumerInUse }
  }

  #nextName(): string {
    return `C${(++this.#consumerCount).toString(36).padStart(7, '0')}`
  }
}

function infoOf({ stream, consumers }: RunningStream, isDetailed: boolean): Record<string, unknown> {
  const { config, createdNs } = stream
  const state = { ...stream.state(isDetailed), consumer_count: consumers.size }
  return { config, created: timeText(createdNs), state }
}

/** With what the server fills in. */
function completed(wanted: Partial<StreamConfig> & { readonly name: string }): StreamConfig {
  const { max_age = 0, duplicate_window = 0 } = wanted
  const window = max_age > 0 ? Math.min(max_age, DEFAULT_WINDOW_NS) : DEFAULT_WINDOW_NS
  return {
    retention: 'limits',
    storage: 'file',
    discard: 'old',
    num_replicas: 1,
    max_msgs: -1,
    max_bytes: -1,
    max_msg_size: -1,
    ...wanted,
    subjects: wanted.subjects ?? [wanted.name],
    max_age,
    duplicate_window: duplicate_window === 0 ? window : duplicate_window,
  }
}
