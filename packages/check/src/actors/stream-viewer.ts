import type { StopRecord, ViewRecord } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'

export interface StreamViewerOptions extends ActorOptions {
  readonly key: string
}

const PATIENCE = { pingIntervalMs: 500, pongTimeoutMs: 5_000, answerTimeoutMs: 15_000 }
/** After an error that is retryable. */
const RETRY_DELAY_MS = 150
const STOP_WITHIN_MS = 2_500

type View = Pick<ViewRecord, 'stream' | 'sequence' | 'status' | 'isCut' | 'text'>

const NONE: View = { sequence: -1, status: 'none', isCut: false, text: '' }

/** Reads the last stream of a key, as a page does that shows it: the whole, then what is appended [P-18.6]. */
export class StreamViewer {
  readonly name: string
  readonly #options: StreamViewerOptions
  readonly #connection: Reconnecting
  #view: View | undefined
  /** What came before the whole. */
  #waiting: (readonly [place: string, payload: string])[] = []
  #isReading = false
  #isStale = false

  constructor(options: StreamViewerOptions) {
    this.name = options.name
    this.#options = options
    this.#connection = new Reconnecting(options, PATIENCE, {
      opened: () => this.#open(),
      grown: (place, payload) => this.#grown(place, payload),
      gap: () => this.#read(),
      ended: () => {
        this.#view = undefined
        this.#isReading = false
      },
    })
  }

  get isLive(): boolean {
    return this.#view !== undefined
  }

  start(): void {
    this.#connection.start()
  }

  cut(): void {
    this.#connection.cut()
  }

  stall(forMs: number): void {
    this.#connection.stall(forMs)
  }

  async stop(): Promise<void> {
    this.#connection.stop()
  }

  /** Asks the writer of the key to stop, once. */
  askToStop(): void {
    const { name, key, record, nowMs } = this.#options
    const connection = this.#connection.open
    if (connection === undefined) return
    const token = `${name}-${record.stops.length}`
    const stop: StopRecord = { token, key, viewer: name, askedAtMs: nowMs(), outcome: 'unanswered', heardAtMs: [] }
    record.stops.push(stop)
    const refused = () => {
      stop.outcome = 'refused'
    }
    connection.request('request', `${key} within=${STOP_WITHIN_MS}\n${JSON.stringify({ type: 'stop', token })}`, {
      ok: () => undefined,
      refused,
      replied: (isError) => {
        if (isError) refused()
        else stop.outcome = 'told'
      },
    })
  }

  /** Writes down what it has. */
  show(isLast = false): void {
    const { name, key, record, nowMs } = this.#options
    const view = this.#view ?? (isLast ? { ...NONE, status: 'unknown' } : undefined)
    if (view !== undefined) record.views.push({ viewer: name, atMs: nowMs(), key, isLast, ...view })
  }

  #open(): void {
    const connection = this.#connection.open
    connection?.request('listen', this.#options.key, {
      ok: () => this.#read(),
      refused: (_, isRetryable) => {
        const again = () => {
          if (this.#connection.open === connection) this.#open()
        }
        if (isRetryable) setTimeout(again, RETRY_DELAY_MS)
      },
    })
  }

  /** A read that a gap comes into is read once more. */
  #read(): void {
    const connection = this.#connection.open
    this.#isStale = this.#isReading
    if (connection === undefined || this.#isReading) return
    this.#isReading = true
    this.#view = undefined
    this.#waiting = []
    let told: Readonly<Record<string, unknown>> = {}
    let text = ''
    const again = () => {
      this.#isReading = false
      if (this.#connection.open === connection) this.#read()
    }
    connection.request('read', this.#options.key, {
      ok: (_answer, _isDuplicate, result = {}) => {
        told = result
      },
      replayed: (_, payload) => {
        text += JSON.parse(payload)
      },
      complete: () => {
        if (this.#isStale) return again()
        this.#isReading = false
        const { stream, sequence, status, isCut } = told
        this.#view =
          stream === undefined
            ? NONE
            : {
                stream: String(stream),
                sequence: Number(sequence),
                status: String(status),
                isCut: isCut === true,
                text,
              }
        this.show()
        for (const [place, payload] of this.#waiting.splice(0)) this.#grown(place, payload)
      },
      refused: (_, isRetryable) => {
        if (isRetryable) setTimeout(again, RETRY_DELAY_MS)
      },
    })
  }

  #grown(place: string, payload: string): void {
    const view = this.#view
    if (view === undefined) {
      this.#waiting.push([place, payload])
      return
    }
    const [stream = '', digits = '', kind = ''] = place.split(':')
    const sequence = Number(digits)
    if (kind === 'beat') return
    if (stream !== view.stream) {
      // A start within an active stream is void.
      if (view.status === 'active') return
      if (kind !== 'start') this.#read()
      else this.#view = { stream, sequence, status: 'active', isCut: false, text: '' }
      return
    }
    if (sequence <= view.sequence || view.status !== 'active') return
    if (sequence > view.sequence + 1) this.#read()
    else if (kind === 'append') this.#view = { ...view, sequence, text: view.text + JSON.parse(payload) }
    else {
      this.#view = { ...view, sequence, status: kind }
      this.show()
      // What the server has of it is looked at, too.
      this.#read()
    }
  }
}
