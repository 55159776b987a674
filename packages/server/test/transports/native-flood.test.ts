import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../src/conformance/transport/eventually.js'
import { WebSocketClient } from '../../src/conformance/transport/web-socket-client.js'
import { createServer } from '../../src/create-server.js'

const MESSAGES = 3_000
const PAYLOAD_BYTES = 20_000

it('loses no reader to a publisher that floods and awaits', async () => {
  const server = createServer({ port: 0, logLevel: 'silent', maxOutboxBytes: 512 * 1024 })
  const { url } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const client = await WebSocketClient.open(url)
  onTestFinished(() => client.destroy())
  client.send('listen 1 flood')
  await eventually(() => expect(client.messages.some((message) => message.toString().startsWith('ok 1'))).toBe(true))
  const payload = new Uint8Array(PAYLOAD_BYTES).fill(0x20)
  for (let count = 0; count < MESSAGES; count++) await server.publish('flood', payload)
  // All of it is more than a hundred outboxes.
  await eventually(() => expect(server.stats().transport.outboxBytes).toBe(0))
  expect(server.stats()).toMatchObject({ connectionCount: 1, transport: { slowConsumerCount: 0 } })
})
