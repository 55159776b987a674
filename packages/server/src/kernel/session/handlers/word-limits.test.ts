import { describe, expect, it } from 'vitest'
import type { ClientMessage } from 'webmq-client/protocol'
import { FakeServer } from '../../../../test/fake-server.js'

const words = (count: number) => Array.from({ length: count }, () => 'a').join('.')

describe('the limits of words [P-3.7]', () => {
  it.each<[ClientMessage, code: string]>([
    [{ verb: 'publish', id: 'i', key: words(33), echo: true, payload: '1' }, 'E_KEY_INVALID'],
    [{ verb: 'history', id: 'i', key: words(33) }, 'E_KEY_INVALID'],
    [{ verb: 'presence', id: 'i', key: words(33), op: 'enter', member: 'm' }, 'E_KEY_INVALID'],
    [{ verb: 'presence', id: 'i', key: words(33), op: 'watch' }, 'E_KEY_INVALID'],
    [{ verb: 'listen', id: 'i', pattern: words(33) }, 'E_PATTERN_INVALID'],
    [{ verb: 'listen', id: 'i', pattern: '#.a.#.b.#.c.#', last: 1 }, 'E_PATTERN_INVALID'],
  ])('refuse %j', async (message, code) => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    client.send(message)
    await fake.settled()
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'i', code }])
    expect(client.received('error')[0]?.message).toMatch(/at most (32 \(maxWords|3 \(maxHashes)\)/)
  })

  it('allow 16 listens with a # before the last word, and another one when one has ended', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    for (let index = 0; index < 16; index++) client.send({ verb: 'listen', id: `s${index}`, pattern: `#.${index}` })
    client.send({ verb: 'listen', id: 'again', pattern: '#.0' })
    client.send({ verb: 'listen', id: 'other', pattern: 'a.#' })
    await fake.settled()
    expect(client.received('ok')).toHaveLength(18)
    client.clear()
    client.send({ verb: 'listen', id: 'refused', pattern: '#.16' })
    client.send({ verb: 'unlisten', id: 'u', pattern: '#.0' })
    client.send({ verb: 'listen', id: 'next', pattern: '#.16' })
    await fake.settled()
    expect(client.messages).toMatchObject([
      { verb: 'error', id: 'refused', code: 'E_LISTEN_LIMIT' },
      { verb: 'ok', id: 'u' },
      { verb: 'ok', id: 'next' },
    ])
    expect(client.received('error')[0]?.message).toContain('maxSearchListensPerConnection')
  })

  it('hold for the process: keys, but not patterns', async () => {
    const { server } = await FakeServer.start()
    const refused = expect.objectContaining({ code: 'E_KEY_INVALID' })
    await expect(server.publish(words(33), 1)).rejects.toEqual(refused)
    await expect(server.publishBatch([{ key: words(33), payload: 1 }])).rejects.toEqual(refused)
    await expect(server.history(words(33))).rejects.toEqual(refused)
    await expect(server.presence(words(33))).rejects.toEqual(refused)
    await server.listen('#.a.#.b.#.c.#', () => undefined).ready
  })
})
