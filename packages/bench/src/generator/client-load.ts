import type { RecordableHistogram } from 'node:perf_hooks'
import { KeyPlan, keyName, type Publisher } from '../load/key-plan.js'
import { PayloadEncoder } from '../load/payload.js'
import { type ScheduledSend, SendSchedule } from '../load/send-schedule.js'
import { nowUs } from '../measure/clock.js'
import { EventLoopMeter } from '../measure/event-loop-meter.js'
import { createLatencyHistogram, recordUs } from '../measure/latency-histogram.js'
import { Pacer } from '../measure/pacer.js'
import { type BenchClient, createBenchClient } from './bench-client.js'
import { inParallel } from './in-parallel.js'
import { LiveCounters } from './live-counters.js'
import type { LoadResult, LoadWorkerData } from './messages.js'
import { type DeliveryTally, Receiver, type Window } from './receiver.js'

/** Clients that connect at the same time; more would only wait in the listen backlog. */
const CONNECTING_COUNT = 32

/** Messages that a late worker sends in a row before it reads arrivals. */
const MAX_SENDS_PER_TURN = 64

interface Player {
  readonly client: BenchClient
  readonly publisher: Publisher
  readonly backend: BackendTally
}

interface BackendTally extends DeliveryTally {
  clientCount: number
  publishedCount: number
}

/** The clients of one worker thread: connects them, sends due messages, counts arrivals. */
export class ClientLoad {
  readonly #data: LoadWorkerData
  readonly #plan: KeyPlan
  readonly #schedule: SendSchedule
  readonly #encoder: PayloadEncoder
  readonly #counters: LiveCounters
  readonly #meter = new EventLoopMeter()
  readonly #players = new Map<number, Player>()
  readonly #backends: readonly BackendTally[]
  readonly #sendLag: RecordableHistogram = createLatencyHistogram()
  #window: Window = { startUs: 0, endUs: 0 }
  #isWindowOpen = false
  #utilization = 0
  #expectedCount = 0
  #publishedInWindowCount = 0
  #acknowledgedCount = 0
  #publishErrorCount = 0
  #firstPublishError: string | undefined
  #lastSendUs = 0

  constructor(data: LoadWorkerData) {
    this.#data = data
    this.#plan = new KeyPlan(data.planOptions)
    this.#schedule = new SendSchedule(this.#plan, clientsOf(data))
    this.#encoder = new PayloadEncoder(data.messageSizeBytes, data.planOptions.seed)
    this.#counters = new LiveCounters(data.counters)
    this.#backends = data.urls.map(() => ({
      clientCount: 0,
      publishedCount: 0,
      deliveredCount: 0,
      deliveredInWindowCount: 0,
      duplicateCount: 0,
      reorderedCount: 0,
      unexpectedCount: 0,
      latency: createLatencyHistogram(),
    }))
  }

  /** Connects all clients; resolves when the server has confirmed every listen. */
  async connect(): Promise<void> {
    await inParallel(clientsOf(this.#data), CONNECTING_COUNT, (client) => this.#connectClient(client))
  }

  /** Sets the window, and starts to send at the start of its warm-up. */
  begin(window: Window): void {
    this.#window = window
    this.#counters.set('lastArrivalUs', 0)
    if (this.#players.size > 0) void this.#play(new Pacer(this.#schedule.wakeUps(window.startUs)))
  }

  /** Sends what is due until everything is sent. */
  async #play(pacer: Pacer): Promise<void> {
    while (this.#counters.read('isSendingDone') === 0) {
      await pacer.next()
      this.#sendDue()
    }
    pacer.stop()
  }

  /** Sends every due message. A late worker still sends all of them, so the load does not shrink. */
  #sendDue(): void {
    for (let sentCount = 0; this.#schedule.nextAtUs <= nowUs() - this.#window.startUs; sentCount++) {
      if (sentCount === MAX_SENDS_PER_TURN) {
        setImmediate(() => this.#sendDue())
        return
      }
      const send = this.#schedule.shift()
      if (send !== undefined) this.#send(send)
    }
    if (this.#schedule.nextAtUs === Number.POSITIVE_INFINITY && this.#counters.read('isSendingDone') === 0)
      this.#endSending()
  }

  result(): LoadResult {
    const players = [...this.#players.values()]
    return {
      perBackend: this.#backends.map((tally, backend) => ({ ...tally, backend })),
      expectedCount: this.#expectedCount,
      publishedInWindowCount: this.#publishedInWindowCount,
      acknowledgedCount: this.#acknowledgedCount,
      publishErrorCount: this.#publishErrorCount,
      ...(this.#firstPublishError === undefined ? {} : { firstPublishError: this.#firstPublishError }),
      reconnectCount: players.reduce((sum, { client }) => sum + client.reconnectCount, 0),
      gapCount: players.reduce((sum, { client }) => sum + client.gapCount, 0),
      clientErrorCount: players.reduce((sum, { client }) => sum + client.errorCount, 0),
      closedCount: 0, // The library connects again: that is a reconnect.
      lastSendUs: this.#lastSendUs,
      lastArrivalUs: this.#counters.read('lastArrivalUs'),
      sendLag: this.#sendLag,
      eventLoopLag: this.#meter.lag,
      // The user may end the run while it still sends.
      utilization: this.#counters.read('isSendingDone') === 0 ? this.#meter.utilization : this.#utilization,
    }
  }

  async close(): Promise<void> {
    this.#meter.stop()
    await inParallel([...this.#players.values()], CONNECTING_COUNT, ({ client }) => client.close())
  }

  async #connectClient(number: number): Promise<void> {
    const { urls, access, messageSizeBytes, planOptions } = this.#data
    const backendIndex = number % urls.length
    const url = urls[backendIndex]
    const backend = this.#backends[backendIndex]
    if (url === undefined || backend === undefined) throw new Error(`client ${number} has no backend`)
    const client = createBenchClient(url, access)
    this.#players.set(number, { client, publisher: this.#plan.publisher(number), backend })
    await client.connect()
    const keys = this.#plan.listensOf(number)
    const bounds = {
      clientCount: planOptions.clientCount,
      maxTurnCount: Math.ceil(planOptions.durationUs / this.#plan.periodUs),
      sizeBytes: messageSizeBytes,
    }
    const receiver = new Receiver(keys.length, bounds, backend)
    await Promise.all(keys.map((key, slot) => this.#listen(client, receiver, slot, keyName(access.keyPrefix, key))))
    backend.clientCount++
    this.#counters.increment('connectedCount')
  }

  #listen(client: BenchClient, receiver: Receiver, slot: number, pattern: string): Promise<void> {
    const counters = this.#counters
    return client.listen(pattern, (payload, key) => {
      const atUs = nowUs()
      const arrival = receiver.receive(slot, key === pattern, payload, this.#window, atUs)
      counters.increment('arrivedCount')
      if (arrival === 'warmup') return
      counters.set('lastArrivalUs', atUs)
      if (arrival === 'delivered' || arrival === 'reordered') counters.increment('deliveredCount')
    })
  }

  #send({ client, turn, atUs }: ScheduledSend): void {
    const player = this.#players.get(client)
    if (player === undefined) throw new Error(`client ${client} is not played by this worker`)
    const publication = player.publisher.next(turn, atUs)
    const isCounted = turn >= 0
    const sentUs = nowUs()
    if (isCounted) {
      if (!this.#isWindowOpen) this.#openWindow()
      this.#lastSendUs = sentUs
      this.#expectedCount += this.#plan.listenerCount(publication.key)
      if (sentUs < this.#window.endUs) this.#publishedInWindowCount++
      recordUs(this.#sendLag, sentUs - (this.#window.startUs + atUs))
      player.backend.publishedCount++
      this.#counters.increment('publishedCount')
    }
    player.client
      .publish(keyName(this.#data.access.keyPrefix, publication.key), this.#encoder.encode(publication))
      .then(
        () => {
          if (isCounted) this.#acknowledgedCount++
        },
        (error: unknown) => {
          // Still counts as published: the server may have taken it, and otherwise it shows as a loss.
          if (isCounted) this.#publishErrorCount++
          this.#firstPublishError ??= error instanceof Error ? error.message : String(error)
        },
      )
  }

  #openWindow(): void {
    this.#isWindowOpen = true
    this.#meter.reset()
  }

  #endSending(): void {
    // Here, not in result(): the idle seconds of the drain would dilute both.
    this.#utilization = this.#meter.utilization
    this.#meter.stop()
    this.#counters.set('isSendingDone', 1)
  }
}

function clientsOf({ firstClient, endClient }: LoadWorkerData): number[] {
  return Array.from({ length: endClient - firstClient }, (_, index) => firstClient + index)
}
