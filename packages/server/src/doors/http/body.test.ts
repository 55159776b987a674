import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { WebMQError } from 'webmq-client/protocol'
import { Bodies } from './body.js'

const LIMITS = { timeoutMs: 10_000, maxTotalBytes: 1_000_000 }
const EVE = { client: 'user eve', charge: () => undefined }

// Symptom: ten batches that came at once delayed all others by ten times what one costs. Cause: all were parsed in one turn.
it('lets others come between large bodies', async () => {
  const bodies = new Bodies(LIMITS)
  const said: string[] = []
  const read = (name: string, byteCount: number) => {
    const request = Object.assign(Readable.from([Buffer.alloc(byteCount)]), { headers: {}, complete: true })
    return bodies.read(request as unknown as IncomingMessage, {} as ServerResponse, EVE, 100_000, async () => {
      said.push(name)
      if (name === 'large') setImmediate(() => said.push('others'))
    })
  }
  await Promise.all([read('large', 20_000), read('large', 20_000), read('small', 100), read('large', 20_000)])
  expect(said.slice(0, 6)).toEqual(['small', 'large', 'others', 'large', 'others', 'large'])
})

/** A body that has begun. */
function unfinished(bodies: Bodies, client: string | undefined, pieces: readonly number[]) {
  const request = Object.assign(new PassThrough(), { headers: {}, complete: false })
  let chargedBytes = 0
  const sender = { client, charge: (byteCount: number) => (chargedBytes += byteCount) }
  let code: string | undefined
  const reading = bodies
    .read(request as unknown as IncomingMessage, {} as ServerResponse, sender, 1_000_000, async () => undefined)
    .catch((error: WebMQError) => {
      code = error.code
    })
  for (const byteCount of pieces) request.write(Buffer.alloc(byteCount))
  return { request, reading, code: () => code, chargedBytes: () => chargedBytes }
}

// Symptom: 64 bodies of one client that never ended refused every request with a body, an operator's too, for 30 s. Cause: one
// bound for all bodies, without a share.
describe('bodies that do not end', () => {
  const fill = async (bodies: Bodies, client: string, count = 100) => {
    const begun = Array.from({ length: count }, () => unfinished(bodies, client, [10_000]))
    await nextTurn()
    return begun.filter(({ code }) => code() === undefined).length
  }

  it('of one client hold a fifth of the room, those of five leave room for another, those of an operator are apart', async () => {
    const bodies = new Bodies(LIMITS)
    expect(await fill(bodies, 'user eve')).toBe(19)
    for (let count = 0; count < 4; count++) await fill(bodies, `user eve${count}`)
    expect(await fill(bodies, 'user alice', 1)).toBe(1)
    const operators = unfinished(bodies, undefined, [900_000])
    const clients = unfinished(bodies, 'user bob', [900_000])
    await nextTurn()
    expect([operators.code(), clients.code()]).toEqual([undefined, 'E_RATE_LIMIT'])
  })

  it('leave room for small bodies even when a hundred clients hold what they can', async () => {
    const bodies = new Bodies(LIMITS)
    for (let count = 0; count < 100; count++) await fill(bodies, `user eve${count}`, 20)
    expect(await fill(bodies, 'user alice', 1)).toBe(0)
    const small = unfinished(bodies, 'user alice', [1_000])
    await nextTurn()
    expect(small.code()).toBeUndefined()
  })

  it('give their room back, and are paid for as they arrive, with an overhead for each piece', async () => {
    const bodies = new Bodies(LIMITS)
    const pieces = unfinished(bodies, 'user eve', Array(200).fill(1))
    await nextTurn()
    expect(pieces.chargedBytes()).toBe(102_600)
    expect(await fill(bodies, 'user eve', 10)).toBe(9)
    pieces.request.destroy()
    await pieces.reading
    expect(await fill(bodies, 'user eve', 10)).toBe(10)
  })
})
