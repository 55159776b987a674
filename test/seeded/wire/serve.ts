import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { WireBroker } from './broker.js'

/** Serves a model broker on a TCP port of loopback that the system chooses, for the suites that the real broker passes. */
export async function serveWire(broker: WireBroker): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    const session = broker.connect({
      send: (bytes) => {
        if (!socket.destroyed) socket.write(bytes)
      },
      end: (how) => {
        if (how === 'reset') socket.resetAndDestroy()
        else socket.end()
      },
    })
    socket.on('data', (bytes) => session.receive(bytes))
    // A reset is news for `close` alone.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => session.closed())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    close: async () => {
      broker.kill(0)
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
