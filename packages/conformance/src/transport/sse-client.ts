import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type RequestOptions, request as secureRequest } from 'node:https'
import { eventually } from './eventually.js'

/** A client of an event stream, which shows the bytes of its body. */
export class SseClient {
  readonly #request: ClientRequest
  #response: IncomingMessage | undefined
  body = ''
  isEnded = false

  /** @param tls Present: over TLS. */
  constructor(port: number, path: string, options: RequestOptions = {}, tls?: RequestOptions) {
    const target = { host: '127.0.0.1', port, path, agent: false, ...options, ...tls }
    this.#request = tls === undefined ? request(target) : secureRequest(target)
    const end = () => {
      this.isEnded = true
    }
    // A reset is one form of an end.
    this.#request.on('error', end).on('close', end)
    this.#request.on('response', (response) => {
      this.#response = response
      response.on('data', (chunk: Buffer) => {
        this.body += chunk.toString()
      })
      response.on('end', end).on('error', end).on('close', end)
    })
    this.#request.end()
  }

  /** The head of the response. */
  async response(): Promise<IncomingMessage> {
    return await eventually(() => {
      if (this.#response === undefined) throw new Error(`no response; ended: ${this.isEnded}`)
      return this.#response
    })
  }

  /** The body without the comments that keep it alive. */
  get events(): string {
    return this.body.replaceAll(':\n\n', '')
  }

  /** Stops reading. */
  pause(): void {
    this.#response?.pause()
  }

  resume(): void {
    this.#response?.resume()
  }

  /** Sends bytes behind the request. */
  write(bytes: string): void {
    this.#request.socket?.write(bytes)
  }

  destroy(): void {
    this.#request.destroy()
  }
}
