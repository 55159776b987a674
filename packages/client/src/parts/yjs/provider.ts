import { Awareness } from 'y-protocols/awareness'
import * as Y from 'yjs'
import { checkKey, checks } from '../../core/checks.js'
import type { WebMQClient } from '../../core/client.js'
import { backoffMs } from '../../core/connection/backoff.js'
import { current } from '../../core/default-instance.js'
import { Emitter } from '../../core/events/emitter.js'
import type { Message, PublishOptions, Subscription } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { history } from '../history/index.js'
import { Channel } from './channel.js'
import { Cursors } from './cursors.js'
import { Exchange } from './exchange.js'
import { Joiner, type Kind } from './frames.js'
import { LogReader, type ReadResult } from './log-reader.js'
import { Outgoing } from './outgoing.js'
import { SnapshotSchedule } from './snapshot-schedule.js'
import { Snapshots } from './snapshots.js'
import type { ProviderEvents, ProviderOptions } from './types.js'

const MAX_BYTES = 67_108_864
/** Of incomplete questions and cursors: the largest are lists of what was deleted. */
const MAX_LIVE_BYTES = 4_194_304
const SNAPSHOT_AFTER_MS = 10_000
const SNAPSHOT_AFTER_UPDATES = 500
const RETRY = { minMs: 500, maxMs: 20_000 }
/** Work for one of the clients waits for a random time that grows with their number. */
const SPREAD = { minMs: 200, perClientMs: 20, maxMs: 5_000 }
const RELIABLE: PublishOptions = { whenOffline: 'reject' }
/** Nobody misses a cursor or a question of a lost connection. */
const BRIEF: PublishOptions = { ack: 'none', whenOffline: 'drop', echo: false, ephemeral: true }

/**
 * Keeps a Yjs document the same in all clients that open its key, also after all of them were offline and the server
 * has lost everything.
 */
export class YjsProvider {
  readonly doc: Y.Doc
  readonly key: string
  /** Cursors, names and colours: for the bindings of editors. */
  readonly awareness: Awareness
  /** Made here: it has a timer. */
  readonly #ownAwareness: Awareness | undefined
  readonly #client: WebMQClient
  readonly #emitter = new Emitter<ProviderEvents>((error) => this.#report(error))
  readonly #random: () => number
  readonly #channel: Channel
  readonly #outgoing: Outgoing
  readonly #snapshots: Snapshots
  readonly #schedule: SnapshotSchedule
  readonly #exchange: Exchange
  readonly #reader: LogReader
  readonly #cursors: Cursors
  readonly #live: Subscription
  readonly #liveJoiner: Joiner
  readonly #removeConnected: () => void
  #pushTimer: ReturnType<typeof setTimeout> | undefined
  #retryTimer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #isSynced = false
  /** Aborted when it is destroyed. */
  readonly #life = new AbortController()

  /**
   * Starts to synchronise the document.
   * @param key The document uses the keys `<key>.updates`, `<key>.live` and `<key>.snapshot.#`.
   * @throws {WebMQError} `E_KEY_INVALID`; `E_OPTION_INVALID` if there is no client.
   */
  constructor(doc: Y.Doc, key: string, options: ProviderOptions = {}) {
    checks.part?.('YjsProvider', options)
    const { awareness = new Awareness(doc), maxBytes = MAX_BYTES, random = Math.random } = options
    const client = (options.client ?? current()) as WebMQClient
    checkKey(`${key}.snapshot.a.65535`)
    this.doc = doc
    this.key = key
    this.awareness = awareness
    this.#ownAwareness = options.awareness ? undefined : awareness
    this.#client = client
    this.#random = random
    this.#channel = new Channel(client)
    const report = (error: unknown) => this.#report(error)
    const common = { random, report, spreadMs: () => this.#spreadMs() }
    this.#outgoing = new Outgoing({
      ...common,
      isLive: () => client.state === 'connected',
      publish: (bytes) => this.#channel.publish({ kind: 'update', bytes }, () => `${key}.updates`, RELIABLE),
    })
    this.#snapshots = new Snapshots({
      client,
      channel: this.#channel,
      key: `${key}.snapshot`,
      maxBytes,
      report,
    })
    this.#schedule = new SnapshotSchedule({
      ...common,
      afterMs: options.snapshotAfterMs ?? SNAPSHOT_AFTER_MS,
      afterUpdates: options.snapshotAfterUpdates ?? SNAPSHOT_AFTER_UPDATES,
      isSettled: () => this.#isSettled(),
      write: () => this.#writeSnapshot(),
    })
    this.#exchange = new Exchange({
      ...common,
      doc,
      ask: (state) => this.#tell('ask', state),
      answer: (update) => this.#outgoing.add(update),
      onQuiet: () => this.#setSynced(true),
    })
    this.#reader = new LogReader({
      client,
      channel: this.#channel,
      snapshots: this.#snapshots,
      doc,
      key: `${key}.updates`,
      maxBytes,
      origin: this,
      history: (name, range) => history(name, { client, ...range }),
      onReading: () => this.#reading(),
      onRead: (result) => this.#read(result),
      onFailed: (error) => this.#readFailed(error),
      report,
    })
    this.#liveJoiner = new Joiner(Math.min(maxBytes, MAX_LIVE_BYTES))
    this.#live = client.listen(`${key}.live`, (_, message) => this.#take(message), { recover: false })
    this.#cursors = new Cursors({
      client,
      awareness,
      key: `${key}.live`,
      origin: this,
      publish: (update) => this.#tell('cursor', update),
      report,
    })
    this.#removeConnected = client.on('status', ({ state }, previous) => {
      if (state === 'connected' && previous.state !== state) this.#up()
    })
    doc.on('update', this.#onUpdate)
    doc.on('destroy', this.#onDestroy)
  }

  /** Whether the document has everything that the log has. Local changes may be on their way to it. */
  get synced(): boolean {
    return this.#isSynced
  }

  /** Calls `handler` at every `event`. Returns a function that removes the handler. */
  on<E extends keyof ProviderEvents>(event: E, handler: (event: ProviderEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  /**
   * Resolves once {@link synced} is `true`.
   * @throws {WebMQError} `E_CLOSED` if it is destroyed first; what the server refuses the document with.
   */
  async whenSynced(): Promise<void> {
    const { signal } = this.#life
    if (!this.#isSynced) await this.#reader.ready
    let remove: () => void = () => undefined
    await new Promise<void>((resolve, reject) => {
      const settle = () => {
        if (this.#isSynced) resolve()
        else if (signal.aborted) reject(new WebMQError('E_CLOSED', { detail: this.key }))
      }
      remove = this.on('synced', settle)
      signal.addEventListener('abort', settle)
      settle()
    }).finally(() => remove())
  }

  /**
   * Stops. The document stays as it is. Resolves once changes that wait were sent, if there is a connection.
   */
  async destroy(): Promise<void> {
    if (this.#life.signal.aborted) return
    this.#life.abort()
    this.doc.off('update', this.#onUpdate)
    this.doc.off('destroy', this.#onDestroy)
    this.#removeConnected()
    clearTimeout(this.#pushTimer)
    clearTimeout(this.#retryTimer)
    this.#schedule.stop()
    this.#snapshots.stop()
    this.#exchange.stop()
    this.#cursors.stop()
    this.#ownAwareness?.destroy()
    await Promise.all([this.#reader.stop(), this.#live.close(), this.#outgoing.finish()])
  }

  readonly #onUpdate = (update: Uint8Array, origin: unknown): void => {
    if (origin !== this) this.#outgoing.add(update)
    this.#exchange.changed(update)
    if (this.#snapshots.isKept) this.#schedule.changed()
  }

  readonly #onDestroy = (): void => {
    void this.destroy()
  }

  #up(): void {
    this.#outgoing.up()
    if (this.#failures > 0) this.#reader.read()
  }

  #reading(): void {
    clearTimeout(this.#pushTimer)
    clearTimeout(this.#retryTimer)
    this.#pushTimer = undefined
    this.#setSynced(false)
  }

  #read({ hasHole, log }: ReadResult): void {
    this.#failures = 0
    const isWhole = !lacksParts(this.doc)
    if (hasHole || !isWhole) this.#exchange.ask()
    if (isWhole) this.#setSynced(true)
    if (!log) return
    this.#pushTimer = setTimeout(() => {
      this.#pushTimer = undefined
      // Others may have done it meanwhile.
      if (!log.covers(Y.snapshot(this.doc))) this.#outgoing.add(log.missing(this.doc))
      this.#reader.compared()
    }, this.#random() * this.#spreadMs())
  }

  #readFailed(error: unknown): void {
    const attempt = this.#failures++
    if (!(error instanceof WebMQError && error.retryable)) this.#report(error)
    this.#retryTimer = setTimeout(() => this.#reader.read(), backoffMs(attempt, { ...RETRY, random: this.#random }))
  }

  #take({ payload, replayed }: Message<unknown>): void {
    if (replayed) return
    try {
      const frame = this.#channel.read(payload, this.#liveJoiner, ['ask', 'written', 'cursor'])
      if (!frame) return
      if (frame.kind === 'ask') this.#exchange.take(frame.bytes)
      else if (frame.kind === 'cursor') this.#cursors.take(frame.bytes)
      else this.#written(frame.bytes[0] ?? 0)
    } catch (error) {
      this.#report(error)
    }
  }

  #written(slot: number): void {
    this.#snapshots.wasWritten(slot)
    this.#schedule.written()
  }

  #isSettled(): boolean {
    const isBusy = this.#reader.isReading || this.#pushTimer !== undefined || !this.#outgoing.isEmpty
    return this.#client.state === 'connected' && this.#isSynced && !isBusy && !lacksParts(this.doc)
  }

  async #writeSnapshot(): Promise<void> {
    const snapshot = { position: this.#reader.position, update: Y.encodeStateAsUpdate(this.doc) }
    const slot = await this.#snapshots.write(snapshot)
    this.#tell('written', Uint8Array.of(slot))
  }

  /** Sends something to the clients that are connected now. */
  #tell(kind: Kind, bytes: Uint8Array): void {
    this.#channel
      .publish({ kind, bytes }, () => `${this.key}.live`, BRIEF)
      .catch((error) => {
        if (!(error instanceof WebMQError && error.retryable)) this.#report(error)
      })
  }

  #spreadMs(): number {
    const { minMs, perClientMs, maxMs } = SPREAD
    return Math.min(maxMs, minMs + perClientMs * this.awareness.getStates().size)
  }

  #setSynced(isSynced: boolean): void {
    if (isSynced === this.#isSynced || (isSynced && this.#reader.isReading)) return
    this.#isSynced = isSynced
    this.#emitter.emit('synced', isSynced)
  }

  #report(error: unknown): void {
    if (!this.#emitter.emit('error', error)) console.error(error)
  }
}

/** Whether updates wait for others that are missing. */
function lacksParts({ store }: Y.Doc): boolean {
  return store.pendingStructs !== null || store.pendingDs !== null
}
