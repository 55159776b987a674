import { Agent, request } from 'node:http'

export interface JsonAnswer {
  readonly status: number
  readonly body: unknown
}

/** Requests at once; further ones wait for a connection. */
const MAX_CONNECTIONS = 64
const REQUEST_TIMEOUT_MS = 10_000
const MAX_ANSWER_CHARS = 1_048_576

/**
 * JSON over HTTP to one port of this machine, on connections that are kept. A request costs a fraction of one of `fetch`,
 * and the bench bids on the processors that it measures.
 */
export class HttpClient {
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, noDelay: true })

  constructor(port: number) {
    this.#port = port
  }

  /** Rejects when there is no answer in time, or it is no JSON. */
  async ask(method: string, path: string, body?: object): Promise<JsonAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    return await new Promise((resolve, reject) => {
      const headers =
        text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
      const options = { host: '127.0.0.1', port: this.#port, method, path, headers, agent: this.#agent }
      const asked = request(options, (response) => {
        let answer = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          answer += chunk
          if (answer.length > MAX_ANSWER_CHARS) asked.destroy(new Error('the answer is too large'))
        })
        response.once('error', reject)
        response.once('end', () => {
          try {
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(answer) })
          } catch (error) {
            reject(error)
          }
        })
      })
      asked.setTimeout(REQUEST_TIMEOUT_MS, () => asked.destroy(new Error('no answer in time')))
      asked.once('error', reject)
      asked.end(text)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
