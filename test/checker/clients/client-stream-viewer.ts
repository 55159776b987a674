import type { StreamViewer, StreamViewerOptions } from '../../../packages/check/src/actors/stream-viewer.js'
import type { StreamRecord, ViewRecord } from '../../../packages/check/src/judging/record.js'
import { Door } from './door.js'
import { CommandError, DrivenClient, type DrivenOptions } from './drive.js'

/** Between two looks at a stream that has ended: another one may follow. */
const AGAIN_MS = 300

type View = Pick<ViewRecord, 'stream' | 'status' | 'text'>

/** A {@link StreamViewer} by the reader of a client in another program. It reads one stream of the key after the other. */
export class ClientStreamViewer implements Pick<StreamViewer, keyof StreamViewer> {
  readonly name: string
  readonly #options: StreamViewerOptions & DrivenOptions
  readonly #client: DrivenClient
  #door: Door | undefined
  #view: View | undefined
  #reader = ''
  #count = 0

  constructor(options: StreamViewerOptions & DrivenOptions) {
    this.name = options.name
    this.#options = options
    this.#client = new DrivenClient(options)
  }

  get isLive(): boolean {
    return this.#view !== undefined
  }

  start(): void {
    this.#client.run(async () => {
      this.#door = await Door.open(this.#options)
      await this.#client.call('connect', { url: this.#door.url })
      while (!this.#client.isStopped) {
        await this.#read()
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    })
  }

  cut(): void {
    this.#door?.cut()
  }

  stall(forMs: number): void {
    this.#door?.stall(forMs, this.#options.nowMs)
  }

  /** It has no means to name its wish: that a stop arrives once is left to the other one. */
  askToStop(): void {
    const reader = this.#reader
    if (this.#view?.status !== 'active') return
    this.#client.run(async () => {
      try {
        await this.#client.call('stopStream', { reader })
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
      }
    })
  }

  show(isLast = false): void {
    const { name, key, record, nowMs } = this.#options
    const { stream, status = 'unknown', text = '' } = this.#view ?? {}
    if (this.#view === undefined && !isLast) return
    const sequence = sequenceOf(
      record.streams.find(({ id }) => id === stream),
      status,
      text,
    )
    const named = stream === undefined ? {} : { stream }
    record.views.push({ viewer: name, atMs: nowMs(), key, isLast, ...named, sequence, status, isCut: false, text })
  }

  async stop(): Promise<void> {
    await this.#client.stop()
    this.#door?.close()
  }

  /** Reads until the end of a stream. */
  async #read(): Promise<void> {
    const reader = `${this.#client.name}/${this.#count++}`
    this.#reader = reader
    await this.#client.call('readStream', { reader, key: this.#options.key })
    let text = ''
    let known: string | undefined
    for (;;) {
      const part = await this.#client.call('streamNext', { reader })
      if (this.#client.isStopped) return
      const stream = typeof part.stream === 'string' ? part.stream : undefined
      const isOver = typeof part.status === 'string'
      if (!isOver) text = `${part.isWhole === true || stream !== known ? '' : text}${part.content}`
      known = stream
      this.#view = {
        ...(stream === undefined ? {} : { stream }),
        status: isOver ? String(part.status) : 'active',
        text,
      }
      if (isOver || part.isWhole === true) this.show()
      if (isOver) return
    }
  }
}

/** The number of the last write that a text shows: each append makes it longer. One that fits to none is that of its length. */
function sequenceOf(stream: StreamRecord | undefined, status: string, text: string): number {
  let length = 0
  let last = 0
  for (const [index, write] of (stream?.writes ?? []).entries()) {
    length += write.text.length
    if (length > text.length || (write.text === '' && index > 0)) break
    last = index
  }
  return status === 'active' ? last : last + 1
}
