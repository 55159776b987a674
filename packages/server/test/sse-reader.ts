import type { RequestOptions } from 'node:https'
import { onTestFinished } from 'vitest'
import { eventually, SseClient } from 'webmq-conformance'

/** An event as a reader sees it. */
export interface ReadEvent {
  readonly name: string
  readonly id: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  readonly data: any
}

/** A reader of an event stream, which parses events as the WHATWG says. */
export class SseReader {
  readonly client: SseClient

  constructor(port: number, query: string, headers: Record<string, string> = {}, options: RequestOptions = {}) {
    this.client = new SseClient(port, `/sse?${query}`, { headers, ...options })
    onTestFinished(() => this.client.destroy())
  }

  /** A reader whose listens are live. */
  static async open(port: number, query: string, headers?: Record<string, string>): Promise<SseReader> {
    const reader = new SseReader(port, query, headers)
    await reader.next('live')
    return reader
  }

  get events(): ReadEvent[] {
    const blocks = this.client.body.split('\n\n').slice(0, -1)
    return blocks.flatMap((block) => {
      const fields = block
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
      const value = (name: string) => fields.find(([field]) => field === name)?.[1]
      const data = value('data')
      if (data === undefined) return []
      return [{ name: value('event') ?? 'message', id: value('id'), data: JSON.parse(data) }]
    })
  }

  /** Data of the messages so far. */
  get messages() {
    return this.named('message').map(({ data }) => data)
  }

  /** What the browser sends when it reconnects. */
  get lastEventId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id
  }

  named(name: string): ReadEvent[] {
    return this.events.filter((event) => event.name === name)
  }

  /** The first event of this name. */
  async next(name: string): Promise<ReadEvent> {
    return await eventually(() => {
      const [event] = this.named(name)
      if (event === undefined) throw new Error(`no ${name}; ended: ${this.client.isEnded}: ${this.client.body}`)
      return event
    })
  }

  /** Status, headers and body of a refusal. */
  async refusal() {
    const { statusCode: status, headers } = await this.client.response()
    await eventually(() => {
      if (!this.client.isEnded) throw new Error('the response has not ended')
    })
    return { status, headers, ...(JSON.parse(this.client.body) as { code: string; message: string }) }
  }
}
