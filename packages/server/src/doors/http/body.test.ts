import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { Bodies } from './body.js'

const LIMITS = { timeoutMs: 10_000, maxTotalBytes: 1_000_000 }

// Symptom: ten batches that came at once delayed all others by ten times what one costs. Cause: all were parsed in one turn.
it('lets others come between large bodies', async () => {
  const bodies = new Bodies(LIMITS)
  const said: string[] = []
  const read = (name: string, byteCount: number) => {
    const request = Object.assign(Readable.from([Buffer.alloc(byteCount)]), { headers: {}, complete: true })
    return bodies.read(request as unknown as IncomingMessage, {} as ServerResponse, 100_000, async () => {
      said.push(name)
      if (name === 'large') setImmediate(() => said.push('others'))
    })
  }
  await Promise.all([read('large', 20_000), read('large', 20_000), read('small', 100), read('large', 20_000)])
  expect(said.slice(0, 6)).toEqual(['small', 'large', 'others', 'large', 'others', 'large'])
})
