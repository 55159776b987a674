import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { FaultyBroker } from '../../../test/faulty-broker.js'
import { combineObservers, type Observer } from '../../features/observing/observer.js'
import type { Identity } from '../identity/index.js'

/** An observer that writes down what it is told. */
function recording(): { readonly observer: Observer; readonly told: unknown[][] } {
  const told: unknown[][] = []
  const observer: Observer = {
    connected: ({ userId }) => told.push(['connected', userId]),
    disconnected: ({ userId }, code, reason, durationMs) =>
      told.push(['disconnected', userId, code, reason, durationMs >= 0]),
    listened: (_, pattern) => told.push(['listened', pattern]),
    unlistened: (_, pattern) => told.push(['unlistened', pattern]),
    published: (session, { key, payload, isBinary }, position) =>
      told.push(['published', session?.userId, key, Buffer.from(payload).toString(), isBinary, position?.offset]),
    refused: (_, action, code, target) => told.push(['refused', action, code, target]),
    upgradeRefused: ({ address, origin }, code) => told.push(['upgradeRefused', address, origin, code]),
  }
  return { observer, told }
}

const verifier = {
  verify: (token: string) =>
    token === 'bad'
      ? Promise.reject(new WebMQError('E_TOKEN_INVALID'))
      : Promise.resolve<Identity>({ userId: token, grants: [{ keys: ['a.#'], allow: ['listen', 'publish'] }] }),
  close: () => undefined,
}

async function withToken(fake: FakeServer, token: string): Promise<FakeClient> {
  return await fake.connect({ headers: { authorization: `Bearer ${token}` } })
}

describe('Observer', () => {
  it('is told of an anonymous session from its connection to its end', async () => {
    const { observer, told } = recording()
    const fake = await FakeServer.start({}, { observers: [observer] })
    const client = await fake.connect()
    client.send({ verb: 'listen', id: '1', pattern: 'a' })
    client.send({ verb: 'listen', id: '2', pattern: 'a' })
    client.send({ verb: 'publish', id: '3', key: 'a', echo: true, payload: '1' })
    client.send({ verb: 'publish', id: '4', key: 'a', messageId: 'm', echo: true, payload: '2' })
    client.send({ verb: 'publish', id: '5', key: 'a', messageId: 'm', echo: true, payload: '2' })
    client.send({ verb: 'unlisten', id: '6', pattern: 'a' })
    await fake.settled()
    client.drop(1000, 'done')
    await fake.settled()
    expect(told).toEqual([
      ['connected', undefined],
      ['listened', 'a'],
      ['published', undefined, 'a', '1', false, 1],
      ['published', undefined, 'a', '2', false, 2],
      ['unlistened', 'a'],
      ['disconnected', undefined, 1000, 'done', true],
    ])
    await fake.server.stop()
  })

  it('is told of refused upgrades, tokens and messages, and of no connection that had no token', async () => {
    const { observer, told } = recording()
    const fake = await FakeServer.start({}, { observers: [observer], verifier })
    await fake.connect({ headers: { origin: 'https://evil.example' } })
    await withToken(fake, 'bad')
    const client = await withToken(fake, 'alice')
    client.send({ verb: 'listen', id: '1', pattern: 'b' })
    client.send({ verb: 'publish', id: '2', key: 'b', echo: true, payload: '1' })
    client.send({ verb: 'auth', id: '3', token: 'bob' })
    client.sendRaw('nonsense')
    client.send({ verb: 'auth', id: '4', token: 'bad' })
    await fake.settled()
    expect(told).toEqual([
      ['upgradeRefused', '127.0.0.1', 'https://evil.example', 'E_ORIGIN_FORBIDDEN'],
      ['refused', 'connect', 'E_TOKEN_INVALID', undefined],
      ['connected', 'alice'],
      ['refused', 'listen', 'E_FORBIDDEN', 'b'],
      ['refused', 'publish', 'E_FORBIDDEN', 'b'],
      ['refused', 'message', 'E_VERB_UNKNOWN', undefined],
      ['refused', 'auth', 'E_FORBIDDEN', undefined],
      ['refused', 'auth', 'E_TOKEN_INVALID', undefined],
      ['disconnected', 'alice', 4501, expect.any(String), true],
    ])
    await fake.server.stop()
  })

  it('is told of a publish only once the broker has accepted it, with the bytes of that time', async () => {
    const { observer, told } = recording()
    const broker = new FaultyBroker()
    const fake = await FakeServer.start({}, { broker, observers: [observer] })
    broker.lose()
    const payload = Buffer.from('first')
    const published = fake.server.publish('a', payload)
    await fake.settled()
    payload.write('later')
    expect(told).toEqual([])
    broker.recover()
    await published
    expect(told).toEqual([['published', undefined, 'a', 'first', true, undefined]])
    await fake.server.stop()
  })

  it('combines several, in order, with the methods that some of them have', () => {
    const calls: string[] = []
    const first = { listened: () => calls.push('first') }
    const second = { listened: () => calls.push('second'), connected: () => calls.push('connected') }
    const combined = combineObservers([first, second] as unknown as Observer[])
    combined?.listened?.({} as never, 'a')
    expect(calls).toEqual(['first', 'second'])
    expect(combined?.connected).toBeDefined()
    expect(combined?.published).toBeUndefined()
    expect(combineObservers([])).toBeUndefined()
  })
})
