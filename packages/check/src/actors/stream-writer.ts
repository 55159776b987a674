import type { StreamRecord, StreamWriteRecord } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'
import type { Connection } from './connection.js'

export interface StreamWriterOptions extends ActorOptions {
  readonly key: string
}

const PATIENCE = { pingIntervalMs: 500, pongTimeoutMs: 5_000, answerTimeoutMs: 15_000 }
export const EVERY_MS = 120
/** After an error that is retryable. */
const RETRY_DELAY_MS = 150
export const BUSY_DELAY_MS = 600
/** Appends after about which a stream ends by itself. */
export const USUAL_APPENDS = 25
/** Units that need several bytes, or are escaped. */
export const UNITS = ['a', 'é', '漢', '😀', '\n', '"', '\\', ' words ', 'x'.repeat(60)]

/** Writes one stream of a key after the other, and has a rival that does the same. */
export class StreamWriter {
  readonly record = { name: '' }
  readonly #options: StreamWriterOptions
  readonly #connection: Reconnecting
  #timer: NodeJS.Timeout | undefined
  #stream: StreamRecord | undefined
  /** Has no answer yet. It is sent again, unchanged. */
  #write: StreamWriteRecord | undefined
  #isMember = false
  #isAskedToStop = false
  #isPaused = false
  #silentUntilMs = 0

  constructor(options: StreamWriterOptions) {
    this.#options = options
    this.record.name = options.name
    this.#connection = new Reconnecting(options, PATIENCE, {
      opened: () => {
        if (this.#stream?.writes[0]?.ackedAtMs !== undefined) this.#join()
        this.#send()
      },
      task: (_group, _message, { request, payload }) => this.#asked(request, payload),
      ended: () => {
        this.#isMember = false
      },
    })
  }

  start(): void {
    this.#connection.start()
    this.#timer = setInterval(() => this.#next(), EVERY_MS)
  }

  /** Ends its stream, and begins no other. */
  pause(): void {
    this.#isPaused = true
    this.#silentUntilMs = 0
  }

  get isSettled(): boolean {
    return this.#stream === undefined
  }

  cut(): void {
    this.#connection.cut()
  }

  /** Writes nothing for some time: as one that is dead. */
  silence(forMs: number): void {
    if (!this.#isPaused) this.#silentUntilMs = this.#options.nowMs() + forMs
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#connection.stop()
  }

  #next(): void {
    const { random, record, name, key, nowMs } = this.#options
    if (this.#write !== undefined || nowMs() < this.#silentUntilMs) return
    if (this.#stream === undefined) {
      if (this.#isPaused) return
      const id = `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(-20)}_${record.streams.length}`
      this.#stream = { id, key, writer: name, writes: [] }
      record.streams.push(this.#stream)
      this.#isAskedToStop = false
      this.#put('start')
    } else if (this.#isAskedToStop) this.#put('stop')
    else if (this.#isPaused || random() < 1 / USUAL_APPENDS) this.#put('end')
    else this.#put('append', `${this.#stream.writes.length}${UNITS[Math.floor(random() * UNITS.length)]}`)
  }

  #put(kind: StreamWriteRecord['kind'], text = ''): void {
    this.#write = { kind, text, sentAtMs: [] }
    this.#stream?.writes.push(this.#write)
    this.#send()
  }

  #send(): void {
    const [write, stream, connection] = [this.#write, this.#stream, this.#connection.open]
    const { key, nowMs } = this.#options
    if (write === undefined || stream === undefined || connection === undefined) return
    write.sentAtMs.push(nowMs())
    const sequence = stream.writes.length - 1
    const payload = write.kind === 'append' ? JSON.stringify(write.text) : ''
    connection.request('stream', `${key} of=${stream.id} seq=${sequence} kind=${write.kind}\n${payload}`, {
      ok: () => {
        write.ackedAtMs ??= nowMs()
        if (write !== this.#write) return
        this.#write = undefined
        if (write.kind === 'start') this.#join()
        else if (write.kind !== 'append') this.#over(connection)
      },
      refused: (code, isRetryable) => {
        if (write !== this.#write) return
        if (isRetryable && code !== 'E_STREAM_BUSY') {
          setTimeout(() => {
            if (write === this.#write) this.#send()
          }, RETRY_DELAY_MS)
          return
        }
        write.code = code
        // Its rival has the key.
        if (code === 'E_STREAM_BUSY') this.silence(BUSY_DELAY_MS)
        this.#over(connection)
      },
    })
  }

  /** The stream has ended, or never begun. */
  #over(connection: Connection): void {
    this.#write = undefined
    this.#stream = undefined
    if (this.#isMember) connection.request('unlisten', `${this.#options.key} group=stream respond`, NOTHING)
    this.#isMember = false
  }

  #join(): void {
    const connection = this.#connection.open
    if (connection === undefined || this.#isMember) return
    this.#isMember = true
    connection.request('listen', `${this.#options.key} group=stream respond`, NOTHING)
  }

  #asked(request: string | undefined, payload: string): void {
    const { record, nowMs } = this.#options
    const { token } = JSON.parse(payload) as { token?: string }
    record.stops.find((stop) => stop.token === token)?.heardAtMs.push(nowMs())
    this.#isAskedToStop = true
    if (request !== undefined) this.#connection.open?.reply(request, 'null')
  }
}

const NOTHING = { ok: () => undefined, refused: () => undefined }
