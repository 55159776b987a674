const STATUS = /^NATS\/1\.0[ ]+(\d{3})/
/** Nobody is there for a message that wants an answer. */
export const NO_RESPONDERS = 503
/** A word of JetStream's beside the messages: heartbeats, and what is asked of a slow consumer. */
export const CONTROL = 100

/** The headers of a message of NATS. */
export class NatsHeaders {
  readonly #text: string

  constructor(bytes: Buffer, start: number, end: number) {
    this.#text = bytes.toString('latin1', start, end)
  }

  /** What the server has to say itself; 0 for headers of a message. */
  get status(): number {
    return Number(STATUS.exec(this.#text)?.[1] ?? 0)
  }

  /** The status and its words. */
  get firstLine(): string {
    return this.#text.slice(0, this.#text.indexOf('\r\n'))
  }

  /** @param name As the server writes it. */
  get(name: string): string | undefined {
    const start = this.#text.indexOf(`\r\n${name}:`)
    if (start < 0) return undefined
    const valueAt = start + name.length + 3
    return this.#text.slice(valueAt, this.#text.indexOf('\r\n', valueAt)).trim()
  }
}
