import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy on loopback that counts bytes. */
export interface CountingProxy {
  /** The upstream's address, with this proxy's host and port. */
  readonly url: string
  /** Bytes so far, over all links. */
  counts(): { readonly up: number; readonly down: number }
  /** Ends it with its links; resolves when the port is free. */
  stop(): Promise<void>
}

/** Starts a proxy in this process. @param upstream With a port: `redis://127.0.0.1:6379`. */
export async function startCountingProxy(upstream: string): Promise<CountingProxy> {
  const url = new URL(upstream)
  const { hostname, port } = url
  const links = new Set<Socket>()
  let up = 0
  let down = 0
  const server = createServer({ noDelay: true }, (client) => {
    const broker = connect({ host: hostname, port: Number(port), noDelay: true })
    for (const socket of [client, broker]) {
      links.add(socket)
      socket.on('close', () => {
        links.delete(socket)
        client.destroy()
        broker.destroy()
      })
      // The end of a link is what both sides see; the node reports it.
      socket.on('error', () => socket.destroy())
    }
    client.on('data', (bytes) => (up += bytes.length)).pipe(broker)
    broker.on('data', (bytes) => (down += bytes.length)).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('a listening server has a port')
  url.hostname = '127.0.0.1'
  url.port = String(address.port)
  return {
    url: url.href.replace(/\/$/, ''),
    counts: () => ({ up, down }),
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of links) socket.destroy()
      await closed
    },
  }
}
