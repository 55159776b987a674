import { once } from 'node:events'
import { type RawData, WebSocket } from 'ws'

/** A message as it came, byte for byte. */
export interface RawFrame {
  readonly header: string
  readonly verb: string
  /** The second field: an id, or of a message its key. */
  readonly name: string
  readonly body: Buffer | undefined
  readonly isBinary: boolean
}

/** How long what must come is waited for. */
export const PATIENCE_MS = 20_000
const NEWLINE = 0x0a

/** Speaks the protocol in bytes that no client library would send, and reads them without a parser. */
export class Peer {
  readonly socket: WebSocket
  frames: RawFrame[] = []
  closeCode: number | undefined
  readonly #waiting = new Set<() => void>()
  #nextId = 1

  private constructor(url: string, token?: string) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    this.socket = new WebSocket(url, ['webmq.v1'], { perMessageDeflate: false, headers })
    this.socket.on('message', (data: RawData, isBinary) => {
      this.frames.push(frameOf(data as Buffer, isBinary))
      this.#look()
    })
    this.socket.on('close', (code) => {
      this.closeCode = code
      this.#look()
    })
  }

  static async open(url: string, token?: string): Promise<Peer> {
    const peer = new Peer(url, token)
    await once(peer.socket, 'open')
    peer.socket.on('error', () => peer.socket.terminate())
    await peer.next(({ verb }) => verb === 'welcome')
    return peer
  }

  /** Sends a message whose payload is text, whatever its bytes. */
  send(header: string, body?: Uint8Array): void {
    const bytes = body === undefined ? Buffer.from(header) : Buffer.concat([Buffer.from(`${header}\n`), body])
    this.socket.send(bytes, { binary: false })
  }

  /** Sends a request. @returns Its answer; `undefined` when the connection has ended, or nothing comes. */
  async ask(headerOf: (id: string) => string, body?: Uint8Array): Promise<RawFrame | undefined> {
    const id = `p${this.#nextId++}`
    this.send(headerOf(id), body)
    return await this.answerTo(id)
  }

  async answerTo(id: string): Promise<RawFrame | undefined> {
    return await this.next(({ verb, name }) => (verb === 'ok' || verb === 'error') && name === id)
  }

  /** The first frame, of those that came and those that come. */
  async next(isMeant: (frame: RawFrame) => boolean, withinMs = PATIENCE_MS): Promise<RawFrame | undefined> {
    const deadline = Date.now() + withinMs
    for (;;) {
      const frame = this.frames.find(isMeant)
      if (frame !== undefined || this.closeCode !== undefined || Date.now() >= deadline) return frame
      await this.#change(deadline - Date.now())
    }
  }

  /** `closed 1007`, or what an error says; `undefined` for `ok`. */
  refusalIn(answer: RawFrame | undefined): string | undefined {
    if (answer === undefined) return this.closeCode === undefined ? 'no answer' : `closed ${this.closeCode}`
    return answer.verb === 'error' ? `refused ${answer.header.split(' ')[2]}` : undefined
  }

  close(): void {
    this.socket.terminate()
  }

  #look(): void {
    for (const look of this.#waiting) look()
    this.#waiting.clear()
  }

  #change(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(done, Math.max(1, withinMs))
      this.#waiting.add(done)
    })
  }
}

function frameOf(data: Buffer, isBinary: boolean): RawFrame {
  const end = data.indexOf(NEWLINE)
  const header = data.toString('utf8', 0, end < 0 ? data.length : end)
  const [verb = '', name = ''] = header.split(' ')
  return { header, verb, name, body: end < 0 ? undefined : data.subarray(end + 1), isBinary }
}
