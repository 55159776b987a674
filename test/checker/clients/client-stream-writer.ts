import {
  BUSY_DELAY_MS,
  EVERY_MS,
  type StreamWriter,
  type StreamWriterOptions,
  UNITS,
  USUAL_APPENDS,
} from '../../../packages/check/src/actors/stream-writer.js'
import type { StreamRecord, StreamWriteRecord } from '../../../packages/check/src/judging/record.js'
import { Door } from './door.js'
import { CommandError, DrivenClient, type DrivenOptions } from './drive.js'

/** A {@link StreamWriter} by a client in another program: one append at a time, so that each is a message. */
export class ClientStreamWriter implements Pick<StreamWriter, keyof StreamWriter> {
  readonly record = { name: '' }
  readonly #options: StreamWriterOptions & DrivenOptions
  readonly #client: DrivenClient
  #door: Door | undefined
  #isWriting = false
  #isPaused = false
  #silentUntilMs = 0

  constructor(options: StreamWriterOptions & DrivenOptions) {
    this.#options = options
    this.record.name = options.name
    this.#client = new DrivenClient(options)
  }

  start(): void {
    this.#client.run(async () => {
      this.#door = await Door.open(this.#options)
      await this.#client.call('connect', { url: this.#door.url })
      while (!this.#client.isStopped) {
        await pause(EVERY_MS)
        if (this.#options.nowMs() >= this.#silentUntilMs && !this.#isPaused) await this.#write()
      }
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#silentUntilMs = 0
  }

  get isSettled(): boolean {
    return !this.#isWriting
  }

  cut(): void {
    this.#door?.cut()
  }

  /** Appends nothing for some time. Its client goes on to say that it is there. */
  silence(forMs: number): void {
    if (!this.#isPaused) this.#silentUntilMs = this.#options.nowMs() + forMs
  }

  async stop(): Promise<void> {
    await this.#client.stop()
    this.#door?.close()
  }

  /** Writes one stream. */
  async #write(): Promise<void> {
    const { name, key, record, random, nowMs } = this.#options
    const id = `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(-20)}_${record.streams.length}`
    const stream: StreamRecord = { id, key, writer: name, writes: [] }
    record.streams.push(stream)
    this.#isWriting = true
    const writer = `${this.#client.name}/${id}`
    try {
      await this.#put(stream, 'start', '', 'openStream', { writer, key, stream: id })
      let isStopped = false
      this.#client.run(async () => {
        await this.#client.call('waitStopped', { writer })
        isStopped = true
      })
      while (!isStopped && !this.#isPaused && random() >= 1 / USUAL_APPENDS && !this.#client.isStopped) {
        const text = `${stream.writes.length}${UNITS[Math.floor(random() * UNITS.length)]}`
        await this.#put(stream, 'append', text, 'append', { writer, content: text })
        do await pause(EVERY_MS)
        while (nowMs() < this.#silentUntilMs && !isStopped)
      }
      await this.#put(stream, isStopped ? 'stop' : 'end', '', 'endStream', { writer })
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      // Its rival has the key.
      if (error.code === 'E_STREAM_BUSY') this.silence(BUSY_DELAY_MS)
    } finally {
      this.#isWriting = false
    }
  }

  async #put(
    { writes }: StreamRecord,
    kind: StreamWriteRecord['kind'],
    text: string,
    command: string,
    rest: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { nowMs } = this.#options
    const write: StreamWriteRecord = { kind, text, sentAtMs: [nowMs()] }
    writes.push(write)
    try {
      const { isBuffered } = await this.#client.call(command, rest)
      // The next answer of the log is for what was buffered, too.
      if (isBuffered !== true) for (const each of writes) each.ackedAtMs ??= nowMs()
    } catch (error) {
      if (error instanceof CommandError && !this.#client.isStopped) write.code = error.code
      throw error
    }
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
