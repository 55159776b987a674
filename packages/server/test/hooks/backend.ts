import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as the backend got it. */
export interface BackendRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into it.
  readonly json: any
}

/** What the backend answers: a status and a text, a JSON value, or nothing, by a 204. */
export type BackendAnswer = { readonly status: number; readonly text: string } | object | undefined

/** The backend of an application, which a webhook asks. */
export class Backend implements AsyncDisposable {
  readonly requests: BackendRequest[] = []
  /** Connections that it has accepted. */
  connectionCount = 0
  answer: (request: BackendRequest, response: ServerResponse) => BackendAnswer | 'none' = () => undefined
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const received = { method: request.method ?? '', headers: request.headers, body, json: JSON.parse(body) }
        this.requests.push(received)
        const answer = this.answer(received, response)
        if (answer === 'none') return
        if (answer === undefined) response.writeHead(204).end()
        else if ('status' in answer && 'text' in answer) response.writeHead(answer.status as number).end(answer.text)
        else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
    })
    this.#server.on('connection', () => this.connectionCount++)
  }

  static async start(): Promise<Backend> {
    const backend = new Backend()
    backend.#server.listen(0, '127.0.0.1')
    await once(backend.#server, 'listening')
    return backend
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/webmq?tenant=1`
  }

  /** Requests of one event. */
  questions(event: string): BackendRequest[] {
    return this.requests.filter(({ json }) => json.event === event)
  }

  /** Told events, in order. */
  get notices(): Record<string, unknown>[] {
    return this.requests.flatMap(({ json }) => json.events ?? [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
