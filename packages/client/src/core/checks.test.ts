import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestServer } from '../dev/testing/index.js'
import { WebMQClient } from '../index.js'
import { type Checks, checks, setChecks } from './checks.js'

let all: Partial<Checks>
beforeEach(() => {
  all = checks
  setChecks({})
})
afterEach(() => setChecks(all))

async function connected() {
  const { WebSocket } = createTestServer()
  const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket })
  await client.connect()
  return client
}

/** What it sends must be well-formed without the checks of development: a header must not be forged. */
describe('a page for production', () => {
  it('refuses keys and patterns that are not valid', async () => {
    const client = await connected()
    for (const key of ['', 'a b', 'a\nb', 'a.*', 'k'.repeat(256), 5, null, undefined, ['a'], {}]) {
      await expect(client.publish(key as string, 1)).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    }
    for (const pattern of [5, null, undefined, ['a']])
      expect(() => client.listen(pattern as never, () => undefined)).toThrowError(
        expect.objectContaining({ code: 'E_PATTERN_INVALID' }),
      )
    expect(() => client.listen('a.b*', () => undefined)).toThrowError(
      expect.objectContaining({ code: 'E_PATTERN_INVALID', message: expect.stringContaining('a.b*') }),
    )
    await client.close()
  })

  it('sends no ids, counts and positions that would break a header', async () => {
    const client = await connected()
    const onError = vi.fn()
    client.on('error', onError)
    await expect(client.publish('a', 1, { id: 'x noecho' })).rejects.toMatchObject({ code: 'E_MESSAGE_INVALID' })
    for (const options of [{ last: -1 }, { last: 0.5 }, { rewind: '2 weeks' }, { since: 'x y' }]) {
      await expect(client.listen('a', () => undefined, options).ready).rejects.toMatchObject({
        code: 'E_MESSAGE_INVALID',
      })
    }
    expect(client.state).toBe('connected')
    await client.close()
  })

  it('refuses a payload that has no JSON', async () => {
    const client = await connected()
    const circle: unknown[] = []
    circle.push(circle)
    for (const payload of [undefined, () => 1, 1n, circle]) {
      await expect(client.publish('a', payload)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    }
    await client.close()
  })

  it('never sends what cannot be a token', async () => {
    const { WebSocket } = createTestServer()
    const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket, token: () => '<html>' })
    client.on('error', () => undefined)
    await expect(client.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
  })

  it('reports an invalid URL at the first connection, and closes', async () => {
    const { WebSocket } = createTestServer()
    const client = new WebMQClient({ url: 'ftp://a', WebSocket })
    client.on('error', () => undefined)
    await expect(client.connect()).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    expect(client.state).toBe('closed')
  })
})
