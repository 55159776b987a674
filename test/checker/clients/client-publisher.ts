import {
  createMessage,
  idOf,
  type Publisher,
  type PublisherOptions,
  payloadOf,
  RETRY_DELAY_MS,
} from '../../../packages/check/src/actors/publisher.js'
import type { AttemptRecord, MessageRecord, PublisherRecord } from '../../../packages/check/src/judging/record.js'
import { Door } from './door.js'
import { CommandError, DrivenClient, type DrivenOptions, receivedOf } from './drive.js'

/** As of a {@link Publisher}. */
const MAX_IN_FLIGHT = 32

/**
 * A {@link Publisher} whose client is that of another program: it is the client that publishes again what was not
 * answered. What was refused for now is published again here. Twins are left to the other one: they try a server.
 */
export class ClientPublisher implements Pick<Publisher, keyof Publisher> {
  readonly record: PublisherRecord
  readonly #options: PublisherOptions & DrivenOptions
  readonly #main: Line
  /** To another node, for what is published once more. */
  readonly #second: Line
  readonly #again: { readonly message: MessageRecord; readonly fromMs: number }[] = []
  #refusedCount = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: PublisherOptions & DrivenOptions) {
    this.#options = options
    this.record = { name: options.name, messages: [], echoes: [] }
    options.record.publishers.push(this.record)
    this.#main = new Line(options, '')
    const chooseNode = () => options.chooseNode(this.#main.door?.node)
    this.#second = new Line({ ...options, chooseNode }, '-again')
  }

  start(): void {
    const { everyMs = 10, againShare = 0 } = this.#options
    this.#main.client.run(async () => {
      await this.#main.connect()
      if (againShare > 0) await this.#second.connect()
      this.#listen()
      this.#timer = setInterval(() => this.#turn(), everyMs)
    })
  }

  pause(): void {
    clearInterval(this.#timer)
  }

  get isSettled(): boolean {
    return this.#main.inFlight.size === 0 && this.#second.inFlight.size === 0 && this.#refusedCount === 0
  }

  cut(): void {
    this.#main.door?.cut()
  }

  stall(forMs: number): void {
    this.#main.door?.stall(forMs, this.#options.nowMs)
  }

  async stop(): Promise<void> {
    this.pause()
    await Promise.all([this.#main.stop(), this.#second.stop()])
  }

  /** What `noecho` leaves out, somebody must have asked for. */
  #listen(): void {
    const { keys, name, noechoShare = 0, nowMs } = this.#options
    const { client } = this.#main
    const own = new Set(keys)
    for (const key of noechoShare > 0 ? own : []) {
      const listener = `${client.name}/${key}`
      client.run(async () => {
        await client.call('listen', { listener, pattern: key })
        while (!client.isStopped) {
          const { items } = await client.call('take', { listener })
          for (const { payload, position, ended } of items as readonly Record<string, unknown>[]) {
            if (ended !== undefined) return
            const { id } = receivedOf(key, payload, position)
            const connection = this.#main.door?.number ?? -1
            if (id.startsWith(`${idOf(name)}-`)) this.record.echoes.push({ connection, atMs: nowMs(), id })
          }
        }
      })
    }
  }

  #turn(): void {
    const { burstCount = 1, nowMs } = this.#options
    for (let count = 0; count < burstCount; count++) {
      if (this.#main.inFlight.size + this.#refusedCount >= MAX_IN_FLIGHT) break
      const message = createMessage(this.#options, this.record.messages.length)
      this.record.messages.push(message)
      this.#publish(this.#main, message)
    }
    const due = this.#again.filter(({ fromMs }) => fromMs <= nowMs())
    for (const each of due) {
      this.#again.splice(this.#again.indexOf(each), 1)
      this.#publish(this.#second, each.message)
    }
  }

  #publish(line: Line, message: MessageRecord): void {
    const { nowMs, random, againShare = 0, againAfterMs = [0, 0] } = this.#options
    line.client.run(async () => {
      const outcome = await line.publish(message)
      if (outcome === 'again') {
        this.#refusedCount++
        setTimeout(() => {
          this.#refusedCount--
          if (!line.client.isStopped) this.#publish(line, message)
        }, RETRY_DELAY_MS)
      } else if (line === this.#main && againShare > 0 && message.sequence % Math.round(1 / againShare) === 0) {
        const [min, max] = againAfterMs
        this.#again.push({ message, fromMs: nowMs() + min + random() * (max - min) })
      }
    })
  }
}

/** A client that publishes, and what it has not been answered. */
class Line {
  readonly client: DrivenClient
  readonly inFlight = new Map<MessageRecord, AttemptRecord>()
  readonly #options: DrivenOptions
  door: Door | undefined

  constructor(options: DrivenOptions, which: string) {
    this.#options = options
    this.client = new DrivenClient(options, which)
  }

  async connect(): Promise<void> {
    this.door = await Door.open(this.#options, { opened: () => this.#opened(), ended: () => this.#ended() })
    await this.client.call('connect', { url: this.door.url })
  }

  /** @returns `again` if it was refused for now. */
  async publish(message: MessageRecord): Promise<'done' | 'again'> {
    const { nowMs } = this.#options
    this.#attempt(message)
    const settle = (result: Partial<AttemptRecord>) => {
      const attempt = this.inFlight.get(message)
      this.inFlight.delete(message)
      if (attempt !== undefined) Object.assign(attempt, { settledAtMs: nowMs(), ...result })
    }
    try {
      const { position, duplicate } = await this.client.call('publish', {
        key: message.key,
        payload: JSON.parse(payloadOf(message)),
        messageId: message.id,
        noEcho: message.isNoecho,
      })
      const place = typeof position === 'string' ? { position } : {}
      settle({ outcome: 'ok', isDuplicate: duplicate === true, ...place })
      return 'done'
    } catch (error) {
      if (!(error instanceof CommandError) || this.client.isStopped) {
        if (!this.client.isStopped) throw error
        return 'done'
      }
      const { code, isRetryable } = error
      settle({ outcome: 'refused', code, isRetryable })
      return isRetryable ? 'again' : 'done'
    }
  }

  async stop(): Promise<void> {
    if (this.door === undefined) return
    await this.client.stop()
    this.door.close()
  }

  #attempt(message: MessageRecord): void {
    const attempt: AttemptRecord = {
      connection: this.door?.number ?? -1,
      sentAtMs: this.#options.nowMs(),
      outcome: 'pending',
    }
    message.attempts.push(attempt)
    this.inFlight.set(message, attempt)
  }

  /** The client sends again what was not answered. */
  #opened(): void {
    for (const [message, { outcome }] of this.inFlight) if (outcome === 'unanswered') this.#attempt(message)
  }

  #ended(): void {
    const settledAtMs = this.#options.nowMs()
    for (const attempt of this.inFlight.values()) Object.assign(attempt, { outcome: 'unanswered', settledAtMs })
  }
}
