import { WebMQClient } from 'webmq-client'
import { eventStreams } from 'webmq-client/sse'
import { plainWebSocket } from '../../generator/bench-client.js'
import { nowUs } from '../../measure/clock.js'
import { type ConnectionRecord, STREAM_NODE } from './log.js'

export interface RecordedClientOptions {
  readonly name: string
  readonly url: string
  readonly heartbeatTimeoutMs: number
  /** It listens by an event stream. */
  readonly isStream?: boolean
}

type Open = { -readonly [Member in keyof ConnectionRecord]: ConnectionRecord[Member] }

/** The client library with its defaults, and a record of its connections. */
export class RecordedClient {
  readonly name: string
  readonly library: WebMQClient
  /** In order; the last one is open if its `endedUs` is `null`. */
  readonly connections: Open[] = []
  readonly isStream: boolean
  trouble: string | null = null

  constructor({ name, url, heartbeatTimeoutMs, isStream = false }: RecordedClientOptions) {
    this.name = name
    this.isStream = isStream
    const WebSocket = isStream ? eventStreams({ WebSocket: null }) : plainWebSocket(undefined)
    this.library = new WebMQClient({ url, WebSocket, heartbeatTimeoutMs })
    this.library.on('status', ({ connection, lastError }, previous) => {
      this.trouble = lastError?.message ?? this.trouble
      if (connection === previous.connection) return
      const last = this.connections.at(-1)
      if (last !== undefined) last.endedUs ??= nowUs()
      if (connection !== undefined && !isStream) this.#opened(connection.node)
    })
    this.library.on('error', ({ error }) => {
      this.trouble = String(error)
    })
  }

  get node(): string | undefined {
    const last = this.connections.at(-1)
    return last?.endedUs === null ? last.node : undefined
  }

  /** Its listen was accepted: only now an event stream is there. */
  listens(): void {
    if (this.isStream && this.node === undefined) this.#opened(STREAM_NODE)
  }

  /** A message arrived, or a publish was accepted. */
  worked(atUs: number): void {
    const last = this.connections.at(-1)
    if (last !== undefined) last.firstUs ??= atUs
  }

  async close(): Promise<void> {
    await this.library.close({ flushMs: 0 })
  }

  #opened(node: string): void {
    this.connections.push({ client: this.name, node, openedUs: nowUs(), endedUs: null, firstUs: null })
  }
}
