import { WebMQClient } from 'webmq-client'
import { openStream, readStream, type StreamReader, type StreamWriter } from 'webmq-client/stream'
import { WebSocket } from 'ws'
import { type LinkFault, Relay } from '../history/relay.js'
import { drawText } from './units.js'

/** How long a client waits for what may never come. */
export interface Patience {
  readonly heartbeatTimeoutMs: number
  readonly connectTimeoutMs: number
}

/** Someone with a client, and a network of their own. */
class Participant {
  readonly #relay: Relay
  readonly #patience: Patience
  client: WebMQClient

  protected constructor(relay: Relay, patience: Patience) {
    this.#relay = relay
    this.#patience = patience
    this.client = this.newClient()
  }

  inflict(fault: LinkFault): void {
    this.#relay.inflict(fault)
  }

  resume(): void {
    this.#relay.resume()
  }

  async stop(): Promise<void> {
    await this.client.close({ flushMs: 0 })
    await this.#relay.stop()
  }

  protected newClient(): WebMQClient {
    const client = new WebMQClient({
      url: this.#relay.url,
      WebSocket,
      reconnect: { minMs: 2, maxMs: 100 },
      ...this.#patience,
    })
    // What is lost on the way is tried again; what a reader shows in the end is examined.
    client.on('error', () => undefined)
    return client
  }
}

/** Writes a stream, and remembers what it was told. */
export class Writing extends Participant {
  readonly key: string
  /** All that it has appended. */
  text = ''
  /** How much of it the log has. */
  acknowledgedLength = 0
  stopCount = 0
  isEnded = false
  /** Why it could not go on. */
  error: unknown
  #writer: StreamWriter | undefined

  static async start(key: string, target: () => number | undefined, patience: Patience): Promise<Writing> {
    return new Writing(key, await Relay.start(target), patience)
  }

  private constructor(key: string, relay: Relay, patience: Patience) {
    super(relay, patience)
    this.key = key
  }

  async open(): Promise<void> {
    this.#writer = await openStream(this.key, { client: this.client, meta: { key: this.key } })
    this.#writer.signal.addEventListener('abort', () => {
      if (!this.error) this.stopCount++
    })
  }

  append(random: () => number): void {
    const more = drawText(random)
    this.text += more
    // Half a character at the end waits for what follows.
    const { length } = this.text.replace(/[\ud800-\udbff]$/, '')
    this.#writer?.append(more).then(
      () => {
        this.acknowledgedLength = Math.max(this.acknowledgedLength, length)
      },
      (error: unknown) => {
        this.error ??= error
      },
    )
  }

  async end(): Promise<void> {
    try {
      await this.#writer?.end({ length: this.text.length })
      this.isEnded = true
    } catch (error) {
      this.error ??= error
    }
  }

  /** Dies without a word. */
  async kill(): Promise<void> {
    this.error = 'killed'
    await this.client.close({ flushMs: 0 })
  }
}

/** Reads a stream, and shows it as a page does, part by part. */
export class Reading extends Participant {
  readonly key: string
  shown = ''
  reader: StreamReader

  static async start(key: string, target: () => number | undefined, patience: Patience): Promise<Reading> {
    return new Reading(key, await Relay.start(target), patience)
  }

  private constructor(key: string, relay: Relay, patience: Patience) {
    super(relay, patience)
    this.key = key
    this.reader = this.#read()
  }

  /** Begins anew with another client, as a page that is loaded again. */
  async reload(): Promise<void> {
    const { client } = this
    this.client = this.newClient()
    this.shown = ''
    this.reader = this.#read()
    await client.close({ flushMs: 0 })
  }

  get isOver(): boolean {
    return !/loading|none|active/.test(this.reader.status)
  }

  #read(): StreamReader {
    const reader = readStream(this.key, { client: this.client })
    reader.onText(({ text = '', isWhole }) => {
      if (reader === this.reader || this.reader === undefined) this.shown = isWhole ? text : this.shown + text
    })
    return reader
  }
}
