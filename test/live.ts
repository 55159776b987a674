import { onTestFinished } from 'vitest'
import { type ClientOptions, type ClientStatus, type Gap, WebMQClient } from 'webmq-client'
import { createServer, type ServerOptions } from 'webmq-server'
import { WebSocket } from 'ws'

/** A server on a free port of this machine; stops with the test. */
export async function startServer(options: ServerOptions = {}) {
  const server = createServer({ port: 0, logLevel: 'silent', ...options })
  const { url, port } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  return { server, url, port }
}

/** A client over real sockets; closes with the test, before its server does. */
export function startClient(url: string, options: Partial<ClientOptions> = {}) {
  const sockets: WebSocket[] = []
  class WatchedWebSocket extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols)
      sockets.push(this)
    }
  }
  const client = new WebMQClient({ url, WebSocket: WatchedWebSocket, random: () => 0.01, ...options })
  onTestFinished(() => client.close({ flushMs: 0 }))
  const changes: ClientStatus[] = []
  const gaps: Gap[] = []
  client.on('status', (status, { state, attempt }) => {
    if (status.state !== state || status.attempt !== attempt) changes.push(status)
  })
  client.on('gap', (gap) => gaps.push(gap))
  /** Cuts its connection as a failing network does; resolves when the client has noticed. */
  const cut = () =>
    new Promise((resolve) => {
      const forget = client.on('status', (status, previous) => {
        if (previous.state !== 'connected' || status.state === previous.state) return
        forget()
        resolve(status)
      })
      sockets.at(-1)?.terminate()
    })
  return { client, sockets, changes, gaps, cut }
}
