import { once } from 'node:events'
import { WebSocket } from 'ws'
import { RunError } from '../exit-codes.js'

/** The server's default limit is 128. */
export const PATTERNS_PER_CONNECTION = 100
/** Connections that are being made at once. */
const PARALLEL = 50
const ANSWER_TIMEOUT_MS = 60_000

/** One of the patterns. A quarter each are keys, end in `*`, start with wildcards, and end in `#` after two words. */
function patternOf(index: number): string {
  const shapes = [
    `tenant.${index}.orders.created`,
    `tenant.${index}.orders.*`,
    `*.${index}.silent.*.closed`,
    `tenant.${index}.#`,
  ] as const
  return shapes[index % shapes.length] ?? ''
}

/** The bench's own connections that listen with patterns, each with as many as a server allows by default. */
export class PatternListeners {
  readonly #sockets: WebSocket[] = []
  #patternCount = 0

  /** Patterns that the server has confirmed. */
  get patternCount(): number {
    return this.#patternCount
  }

  /**
   * Listens with this many different patterns.
   * @throws {RunError} when one is not confirmed.
   */
  async add(port: number, count: number): Promise<void> {
    const connectionCount = Math.ceil(count / PATTERNS_PER_CONNECTION)
    let next = 0
    const work = async () => {
      while (next < connectionCount) {
        const first = next++ * PATTERNS_PER_CONNECTION
        await this.#listen(port, first, Math.min(count, first + PATTERNS_PER_CONNECTION))
      }
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL, connectionCount) }, work))
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
  }

  async #listen(port: number, first: number, end: number): Promise<void> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, 'webmq.v1', { perMessageDeflate: false })
    this.#sockets.push(socket)
    const confirmed = new Promise<void>((resolve, reject) => {
      let waiting = end - first
      const fail = (reason: string) => reject(new RunError(`patterns could not be listened to: ${reason}`))
      const timer = setTimeout(() => fail(`${waiting} were not confirmed`), ANSWER_TIMEOUT_MS)
      socket.on('message', (data) => {
        const text = String(data)
        if (text.startsWith('error')) fail(text)
        if (!text.startsWith('ok')) return
        this.#patternCount++
        if (--waiting > 0) return
        clearTimeout(timer)
        resolve()
      })
      socket.on('error', ({ message }) => fail(message))
      socket.on('close', (code) => fail(`closed with ${code}`))
    })
    confirmed.catch(() => undefined) // It is waited for below, unless the connection fails first.
    await Promise.race([once(socket, 'open'), confirmed])
    for (let index = first; index < end; index++) socket.send(`listen ${index - first} ${patternOf(index)}`)
    await confirmed
  }
}
