import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, it, onTestFinished, vi } from 'vitest'
import { RequestCharges } from './budgets.js'
import { HttpConnections } from './connections.js'

// Symptom: one connection that asked for /health as fast as it could took 41 % of a core. Cause: strangers had as much work as a client.
it('lets an address have a fifth of the work of a connection, and a twentieth at once', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const options = { workPerSecond: 100_000 }
  const charges = new RequestCharges({ callers: { addressOf: () => '203.0.113.1' }, options }, new HttpConnections())
  const request = { rawHeaders: [], url: '', socket: {} } as unknown as IncomingMessage
  const waits = Array.from({ length: 53 }, () => charges.charge(request, {} as ServerResponse, '/nothing'))
  // Each costs 100 units, and one overdraws.
  expect(waits).toEqual([...Array.from({ length: 51 }, () => 0), 10, 15])
})
