import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hooks } from '../../src/index.js'
import { Serving } from './serving.js'

const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)

beforeAll(() => {
  process.on('uncaughtException', note).on('unhandledRejection', note)
})

afterAll(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note)
  expect(uncaught).toEqual([])
})

describe.each(['sync', 'async'] as const)('a hook that answers %s', (way) => {
  const later = <T>(value: T): T | Promise<T> => (way === 'sync' ? value : sleep(1).then(() => value))

  it('connect gives an identity, so that no token is needed', async () => {
    const hooks: Hooks = {
      connect: ({ headers }) =>
        later({
          user: headers.cookie?.slice('sid='.length) ?? '',
          grants: [{ keys: ['chat.#'], allow: ['publish'] as const }],
        }),
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect({ headers: { cookie: 'sid=alice' } })
    expect(client.received('welcome')).toMatchObject([{ auth: 'none' }])
    const publish = (key: string) => client.request((id) => ({ verb: 'publish', id, key, echo: true, payload: '1' }))
    expect(await publish('chat.1')).toMatchObject({ verb: 'ok' })
    expect(await publish('other')).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN' })
    expect(serving.bugs).toEqual([])
  })

  it('connect refuses with its code and text, for good', async () => {
    const hooks: Hooks = { connect: () => later({ refuse: { code: 'E_NO_CREDIT', message: 'pay first' } }) }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    await client.until(() => client.closure !== undefined)
    expect(client.messages).toMatchObject([
      { verb: 'error', code: 'E_NO_CREDIT', message: 'pay first', retryable: false },
      { verb: 'bye', code: 4504 },
    ])
    expect(client.closure?.code).toBe(4504)
  })

  it('connect that says nothing leaves a client without rights, unless everyone has them', async () => {
    for (const insecure of [false, true]) {
      await using serving = await Serving.start({ insecure, hooks: { connect: () => later(undefined) } })
      const client = await serving.connect()
      const answer = await client.request((id) => ({ verb: 'listen', id, pattern: 'a' }))
      expect(answer).toMatchObject(insecure ? { verb: 'ok' } : { verb: 'error', code: 'E_FORBIDDEN' })
    }
  })

  it('publish refuses, changes the key and the payload, or says nothing', async () => {
    const hooks: Hooks = {
      publish: ({ key, isBinary, json, payload }) => {
        if (key !== 'bytes' && json() !== 'p') throw new Error('another payload')
        if (key === 'refused') return later({ refuse: { code: 'E_NO_CREDIT', message: 'no' } })
        if (key === 'moved') return later({ key: 'elsewhere', payload: { was: [...payload], isBinary } })
        if (key === 'bytes') return later({ payload: new Uint8Array([7]) })
        return later(undefined)
      },
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const publish = (key: string) => client.request((id) => ({ verb: 'publish', id, key, echo: true, payload: '"p"' }))
    expect(await publish('refused')).toMatchObject({ verb: 'error', code: 'E_NO_CREDIT', message: 'no' })
    expect(await publish('moved')).toMatchObject({ verb: 'ok' })
    expect(await publish('bytes')).toMatchObject({ verb: 'ok' })
    expect(await publish('same')).toMatchObject({ verb: 'ok' })
    expect(client.received('message').map(({ key, payload }) => [key, payload])).toEqual([
      ['elsewhere', '{"was":[34,112,34],"isBinary":false}'],
      ['bytes', new Uint8Array([7])],
      ['same', '"p"'],
    ])
  })

  it('keeps the order of a connection', async () => {
    let count = 0
    const hooks: Hooks = {
      // The first is the slowest.
      publish: () => (way === 'sync' ? undefined : sleep(count++ === 0 ? 30 : 0).then(() => undefined)),
    }
    await using serving = await Serving.start({ hooks })
    const client = await serving.connect()
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    const payloads = Array.from({ length: 20 }, (_, index) => String(index))
    for (const payload of payloads) client.send({ verb: 'publish', key: 'a', echo: true, payload })
    client.send({ verb: 'unlisten', id: 'u', pattern: 'a' })
    expect(await client.answerTo('u')).toMatchObject({ verb: 'ok' })
    expect(client.payloads).toEqual(payloads)
  })
})
