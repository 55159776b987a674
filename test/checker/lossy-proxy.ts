import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type RawData, WebSocket, WebSocketServer } from 'ws'

/** In front of a server: each frame for a client is passed on, but for those that `drops`. */
export class LossyProxy {
  readonly url: string
  readonly #server: WebSocketServer

  private constructor(server: WebSocketServer) {
    this.#server = server
    this.url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws`
  }

  static async start(url: string, drops: (frame: string) => boolean): Promise<LossyProxy> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'webmq.v1' })
    await once(server, 'listening')
    server.on('connection', (near) => {
      const far = new WebSocket(url, ['webmq.v1'])
      const opened = once(far, 'open')
      const text = (data: RawData) => data.toString()
      near.on('message', (data) => void opened.then(() => far.send(text(data))))
      far.on('message', (data) => {
        if (!drops(text(data))) near.send(text(data))
      })
      // What a client has not closed with a code was cut.
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        one.on('error', () => other.terminate())
        one.on('close', (code) => (code === 1_000 || code === 1_001 ? other.close(code) : other.terminate()))
      }
    })
    return new LossyProxy(server)
  }

  stop(): void {
    for (const client of this.#server.clients) client.terminate()
    this.#server.close()
  }
}

/** Loses every `count`-th live message, in silence. */
export function everyLive(count: number): (frame: string) => boolean {
  let seen = 0
  return (frame) => /^message \S+ \S+\n/.test(frame) && ++seen % count === 0
}
