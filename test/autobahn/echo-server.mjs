// Sends every message back, on one transport and nothing above it. Prints its port; ends when its parent does.
// Arguments: name of the transport, and `compression` to negotiate permessage-deflate.
import { fileURLToPath } from 'node:url'

const [name = 'native', compression] = process.argv.slice(2)
const folder = name === 'uws' ? 'transport-uws/dist' : `server/dist/adapters/transports/${name}`
const file = fileURLToPath(new URL(`../../packages/${folder}/transport.js`, import.meta.url))
const { [`create${name[0].toUpperCase()}${name.slice(1)}Transport`]: createTransport } = await import(file)

const transport = createTransport({
  host: '127.0.0.1',
  port: 0,
  threads: 1,
  // Case 9 sends messages of 16 MiB.
  maxMessageBytes: 32 * 1024 * 1024,
  maxOutboxBytes: 64 * 1024 * 1024,
  compression: compression === 'compression' ? { thresholdBytes: 0 } : undefined,
  maxHeaderBytes: 8 * 1024,
  maxConnections: 1_000,
  handshakeTimeoutMs: 10_000,
  pingIntervalMs: 0,
  pingTimeoutMs: 10_000,
  closeTimeoutMs: 1_000,
})

const { port } = await transport.start({
  upgrade: ({ id }) => transport.accept(id),
  open: () => undefined,
  message: (connection, data, isBinary) => transport.send(connection, data, isBinary),
  closed: () => undefined,
  failed: (error) => {
    console.error(error)
    process.exitCode = 1
  },
})
process.send?.({ port })
process.once('disconnect', async () => {
  await transport.stop()
  process.exit()
})
