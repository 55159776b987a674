// A node of a mesh in its own process. It prints its port, then every message and gap, and publishes on request.
import { MeshBroker } from '../../dist/adapters/brokers/mesh/broker.js'
import { HistoryRules, parseHistoryRule } from '../../dist/kernel/ports/history-rules.js'

const [{ rules, ...options }] = process.argv.slice(2).map((text) => JSON.parse(text))
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
const broker = new MeshBroker({
  ...options,
  history: new HistoryRules(rules.map(parseHistoryRule)),
  logger: silent,
})
await broker.start({
  deliver: ({ payload, position }) => process.send({ text: Buffer.from(payload).toString(), position }),
  gap: () => process.send({ gap: true }),
  refused: () => undefined,
  status: () => undefined,
})
await broker.bind('#')
process.send({ port: broker.address.port })
process.on('message', async (message) => {
  if (message === 'stop') {
    await broker.stop()
    // Nothing of the broker is left to keep the process alive.
    process.disconnect()
  } else {
    await broker.publish({
      key: 'a',
      payload: Buffer.from(message),
      isBinary: false,
      messageId: message.padEnd(22, '_'),
    })
    process.send({ accepted: message })
  }
})
