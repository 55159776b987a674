import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import { request, respond, work } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any first retry. */
const reconnect = () => vi.advanceTimersByTimeAsync(600)

// Symptom: of the messages whose publish was answered `ok` while a worker closed its membership, some were handled by nobody.
// Cause: the client dropped what was on its way when it asked the server to leave.
describe('a membership that is closed', () => {
  it('handles what is on its way, and then nothing', async () => {
    const { client, server } = createTestClient()
    const { client: publisher } = createTestClient({ server })
    const taken: unknown[] = []
    const member = work('jobs.*', (job) => taken.push(job), { client, group: 'g' })
    await member.ready
    await publisher.connect()
    const published = publisher.publish('jobs.x', 1)
    void member.close()
    await Promise.all([published, settle()])
    expect(taken).toEqual([1])
    await publisher.publish('jobs.x', 2)
    await settle()
    expect(taken).toEqual([1])
  })

  it('may begin anew before the server knows of its end', async () => {
    const { client } = createTestClient()
    const taken: string[] = []
    const first = work('jobs.*', (job) => taken.push(`first ${job}`), { client, group: 'g' })
    await first.ready
    void first.close()
    await work('jobs.*', (job) => taken.push(`again ${job}`), { client, group: 'g' }).ready
    await client.publish('jobs.x', 1)
    await settle()
    expect(taken).toEqual(['again 1'])
  })

  it('replies to what it still handles', async () => {
    const { client, server } = createTestClient()
    const { client: asking } = createTestClient({ server })
    let reply = (_: string) => undefined as unknown
    const handled = new Promise<string>((resolve) => {
      reply = resolve
    })
    const member = respond('sum', () => handled, { client })
    await member.ready
    const asked = request('sum', 1, { client: asking })
    await settle()
    await member.close()
    reply('done')
    expect(await asked).toBe('done')
  })
})

// Symptom: somebody got the reply to a question of somebody else. Cause: a responder that was slower than a reconnect sent its
// reply by the next connection, where the id may name another request.
it('a responder sends no reply by another connection', async () => {
  const { client, server } = createTestClient()
  const { client: asking } = createTestClient({ server })
  let reply = (_: string) => undefined as unknown
  const handled = new Promise<string>((resolve) => {
    reply = resolve
  })
  const member = respond('sum', () => handled, { client })
  await member.ready
  const asked = request('sum', 1, { client: asking }).catch((error: { code: string }) => error.code)
  await settle()
  server.drop()
  await reconnect()
  await member.ready
  reply('late')
  await settle()
  expect(await asked).toBe('E_DISCONNECTED')
  expect(server.received.filter(({ verb }) => verb === 'reply')).toEqual([])
})
