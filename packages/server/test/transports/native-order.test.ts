import { describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULT_OPTIONS, eventually, RecordingSink, WebSocketClient } from 'webmq-conformance'
import { createNativeTransport } from '../../src/adapters/transports/native/transport.js'

const COUNT = 20_000

describe('native transport, when the event loop is behind', () => {
  it.each([1, 2, 3])('keeps the order and hears the others meanwhile, with %i threads', async (threads) => {
    // Symptom: messages of one connection were handed over before earlier ones of it. Cause: the event loop took new events
    // for a thread with little to do (inline mode) while it had events to handle that it had taken before.
    const transport = createNativeTransport({ ...DEFAULT_OPTIONS, threads })
    onTestFinished(() => transport.stop())
    const numbers: number[] = []
    const asked: number[] = []
    const sink = new RecordingSink({
      upgrade: ({ id }) => transport.accept(id),
      message: (connection, data) => {
        const text = Buffer.from(data).toString()
        if (text === 'ask') {
          asked.push(numbers.length)
          transport.send(connection, 'answer', false)
        } else {
          work()
          numbers.push(Number(text))
        }
      },
    })
    const { port } = await transport.start(sink)
    const open = async () => {
      const client = await WebSocketClient.open(`ws://127.0.0.1:${port}/ws`)
      onTestFinished(() => client.destroy())
      return client
    }
    const [flooder, asking] = [await open(), await open()]
    const timer = setInterval(() => asking.send('ask'), 1)
    onTestFinished(() => clearInterval(timer))
    for (let number = 0; number < COUNT; number++) flooder.send(String(number))
    await eventually(() => expect(numbers).toHaveLength(COUNT), 20_000)
    expect(numbers.findIndex((number, place) => number !== place)).toBe(-1)
    expect(new Set(asked.filter((place) => place < COUNT)).size).toBeGreaterThan(2)
  })
})

/** What a handler does: 30 us. */
function work(): void {
  const endMs = performance.now() + 0.03
  while (performance.now() < endMs) {
    // Uses the processor.
  }
}
