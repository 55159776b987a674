import { expect, it, vi } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'

// Symptom: a client waited for its pong until all that two others had sent was handled, seconds for dear requests. Cause:
// a batch was handled as it came, whatever it cost.
it('answers a ping before the dear requests that others sent earlier', async () => {
  const fake = await FakeServer.start({
    maxOutboxBytes: 67_108_864,
    workPerSecond: 1_000_000_000,
    workBurst: 1_000_000_000,
  })
  const floods = [await fake.connect(), await fake.connect()]
  const bystander = await fake.connect()
  const data = JSON.stringify('x'.repeat(4_000))
  for (const [index, flood] of floods.entries()) {
    for (let key = 0; key < 100; key++) {
      flood.send({ verb: 'presence', id: 'e', key: `room.${key}`, op: 'enter', member: `m${index}`, data })
    }
  }
  do await fake.settled()
  while (fake.server.stats().work.backlogBytes > 0)
  for (const flood of floods) await vi.waitFor(() => expect(flood.received('ok')).toHaveLength(100))
  for (const client of [...floods, bystander]) client.clear()
  for (const flood of floods) {
    for (let count = 0; count < 500; count++) {
      flood.send({ verb: 'presence', id: `g${count}`, key: `room.${count % 100}`, op: 'get' })
    }
  }
  bystander.send({ verb: 'ping' })
  await fake.transport.settled()
  expect(bystander.received('pong')).toHaveLength(1)
  // None at all where the round before the ping's ended by the clock.
  expect(Math.max(...floods.map((flood) => flood.received('ok').length))).toBeLessThan(250)
  for (const flood of floods) {
    await vi.waitFor(() => expect(flood.received('ok')).toHaveLength(500))
    expect(flood.received('ok').map(({ id }) => id)).toEqual(Array.from({ length: 500 }, (_, count) => `g${count}`))
  }
})

it('reads no further from a client that has used up its work, and closes nothing', async () => {
  const fake = await FakeServer.start({ workPerSecond: 1_000_000, workBurst: 1_000 })
  const [flood, bystander] = [await fake.connect(), await fake.connect()]
  for (const client of [flood, bystander]) client.clear()
  for (let count = 0; count < 4_000; count++) flood.send({ verb: 'ping' })
  await fake.settled()
  bystander.send({ verb: 'ping' })
  await fake.settled()
  expect(bystander.received('pong')).toHaveLength(1)
  expect(fake.server.stats().work.pauseCount).toBeGreaterThan(0)
  expect(fake.server.stats().refusedCounts).toEqual({})
  while (flood.received('pong').length < 4_000) await new Promise((resolve) => setTimeout(resolve, 5))
})
