import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { eventually, WebSocketClient } from 'webmq-conformance'
import { API_KEY, type ApiAnswer, ApiServer, SECRET, tokenOf } from './api-server.js'

let api: ApiServer
let annToken: string

beforeAll(async () => {
  api = await ApiServer.start({ jwt: { secret: SECRET }, origins: ['https://app.example.com'], meta: ['chat.#'] })
  annToken = await tokenOf('ann', ['chat.#'])
})

afterAll(async () => {
  await api.server.stop({ drainMs: 0 })
})

const codeOf = ({ status, json }: ApiAnswer) => `${status} ${json.code ?? 'ok'}`

describe('POST /api/publish', () => {
  it('publishes JSON, and finds a retry', async () => {
    const body = { key: 'chat.1', payload: { text: 'hello' }, id: 'a' }
    const first = await api.ask('/api/publish', { body })
    expect(first).toMatchObject({ status: 200, json: { duplicate: false, position: expect.stringMatching(/:/) } })
    expect(await api.ask('/api/publish', { body })).toMatchObject({ status: 200, json: { duplicate: true } })
    const { json } = await api.ask('/api/history?key=chat.1')
    expect(json.messages).toMatchObject([{ key: 'chat.1', payload: { text: 'hello' }, position: first.json.position }])
  })

  it('publishes bytes, with the key in the query and the id in a header', async () => {
    const request = {
      body: new Uint8Array([1, 2, 255]),
      headers: { 'content-type': 'application/octet-stream', 'idempotency-key': '"b-1"' },
    }
    expect((await api.ask('/api/publish?key=chat.bytes', request)).json).toMatchObject({ duplicate: false })
    expect((await api.ask('/api/publish?key=chat.bytes', request)).json).toMatchObject({ duplicate: true })
    const { json } = await api.ask('/api/history?key=chat.bytes')
    expect(json.messages).toMatchObject([{ base64: 'AQL/' }])
  })

  it.each([
    ['a key that is none', { key: 'a b', payload: 1 }, '422 E_KEY_INVALID'],
    ['a reserved key', { key: '$webmq.control', payload: 1 }, '422 E_KEY_INVALID'],
    ['an unknown member', { key: 'a', payload: 1, qos: 2 }, '400 E_REQUEST_INVALID'],
    ['no key', { payload: 1 }, '400 E_REQUEST_INVALID'],
    ['no payload', { key: 'a' }, '400 E_REQUEST_INVALID'],
    ['two payloads', { key: 'a', payload: 1, base64: '' }, '400 E_REQUEST_INVALID'],
    ['an id with a space', { key: 'a', payload: 1, id: 'a b' }, '400 E_REQUEST_INVALID'],
    ['a list', [], '400 E_REQUEST_INVALID'],
    ['a payload above the limit', { key: 'a', payload: 'x'.repeat(300_000) }, '413 E_PAYLOAD_TOO_LARGE'],
  ])('refuses %s', async (_, body, expected) => {
    expect(codeOf(await api.ask('/api/publish', { body }))).toBe(expected)
  })

  // Symptom: "has no member key, and has no member key".
  it('names a member that is missing, once', async () => {
    const { json } = await api.ask('/api/publish/batch', { body: { messages: [{ payload: 1 }] } })
    expect(String(json.message).match(/has no member key/g)).toHaveLength(1)
  })

  // Symptom: "token is not valid: not a signed JWT", and the API key was wrong.
  it('says that it is no API key either', async () => {
    const { json } = await api.ask('/api/publish', {
      body: { key: 'a', payload: 1 },
      bearer: 'a-wrong-key-of-24-chars!',
    })
    expect(json).toMatchObject({ code: 'E_TOKEN_INVALID', message: expect.stringContaining('neither an API key') })
  })
})

// Symptom: an id of 64 bits that a back end published arrived with other digits, without an error. Cause: the body was parsed, and
// its payload written anew.
describe('a payload', () => {
  const start = async () => {
    const open = await ApiServer.start()
    const client = await WebSocketClient.open(open.webSocketUrl)
    onTestFinished(async () => {
      client.destroy()
      await open.server.stop({ drainMs: 0 })
    })
    /** As the API answers it, not parsed. */
    const textOf = async (path: string, body?: string) => {
      const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
      const response = await fetch(
        `${open.url}${path}`,
        body === undefined ? { headers } : { method: 'POST', headers, body },
      )
      return `${response.status} ${await response.text()}`
    }
    return { client, textOf }
  }

  it('is what its publisher has written, for listeners and in the log', async () => {
    const { client, textOf } = await start()
    client.send('listen 1 digits')
    await eventually(() => expect(client.texts.some((text) => text.startsWith('ok 1'))).toBe(true))
    const payload = '{ "id":1724442618569203714, "price": 1.0,"far":1e400, "id": -0,\n"text":"\\u00e9"}'
    await textOf('/api/publish', `{"id":"d-1", "payload" : ${payload} ,"key":"digits"}`)
    await textOf('/api/publish/batch', '{"messages":[ {"key":"digits","payload":9007199254740993 }]}')
    await eventually(() => expect(client.texts.at(-1)).toMatch(/\n9007199254740993$/))
    expect(client.texts.at(-2)?.endsWith(`\n${payload}`)).toBe(true)
    const history = await textOf('/api/history?key=digits')
    expect(history).toContain(`"payload":${payload}}`)
    expect(history).toContain('"payload":9007199254740993}')
    expect(JSON.parse(history.slice(4)).messages).toHaveLength(2)
  })

  // Symptom: GET /api/history of a key answered 500 until the log had forgotten a message. Cause: `JSON.stringify` overflows its stack on
  // what somebody has nested deeply.
  it('of the log may be nested as deeply as its publisher likes, and need not be JSON', async () => {
    const { client, textOf } = await start()
    const deep = `${'['.repeat(60_000)}${']'.repeat(60_000)}`
    for (const text of [deep, 'no "JSON"', '1}']) client.send(`publish - odd\n${text}`)
    await eventually(async () => expect(await textOf('/api/history?key=odd')).toContain('1}'))
    const [status, json = ''] = (await textOf('/api/history?key=odd')).split(/ (.*)/s)
    expect(status).toBe('200')
    expect(json).toContain(`"payload":${deep}}`)
    const { messages } = JSON.parse(json.replace(deep, '0')) as { messages: { text?: string }[] }
    expect(messages.map(({ text }) => text)).toEqual([undefined, 'no "JSON"', '1}'])
  })

  it.each([
    ['/api/publish', '{"key":"a","payload":1,"key":"b"}'],
    ['/api/publish', '{"key":"a","payload":1,"\\u006bey":"a"}'],
    ['/api/publish/batch', '{"messages":[{"key":"a","payload":1,"payload":2}]}'],
    ['/api/streams', '{"key":"a","stream":"s","sequence":0,"kind":"start","kind":"stop"}'],
    ['/api/disconnect', '{"user":"ann","user":"bob"}'],
  ])('%s refuses a member that is there twice: %s', async (path, body) => {
    const { textOf } = await start()
    expect(await textOf(path, body)).toMatch(/^400 .*"E_REQUEST_INVALID".* twice/)
  })
})

describe('what a message says about itself', () => {
  it('is stamped by the server: the user of the token, and none for an operator', async () => {
    const forged = { key: 'chat.meta', payload: { userId: 'bob' } }
    await api.ask('/api/publish', { bearer: annToken, body: forged })
    await api.ask('/api/publish', { body: { ...forged, id: 'mine' } })
    expect(codeOf(await api.ask('/api/publish', { body: { ...forged, userId: 'bob' } }))).toBe('400 E_REQUEST_INVALID')
    const { json } = await api.ask('/api/history?key=chat.meta')
    const stamp = { timeMs: expect.any(Number), id: expect.stringMatching(/^[\w-]{22}$/) }
    expect(json.messages).toEqual([
      { key: 'chat.meta', payload: { userId: 'bob' }, position: expect.any(String), userId: 'ann', ...stamp },
      { key: 'chat.meta', payload: { userId: 'bob' }, position: expect.any(String), ...stamp },
    ])
  })

  it('may be that it is ephemeral, and then it is not in the log', async () => {
    const body = { key: 'chat.ephemeral', payload: 1, ephemeral: true }
    expect((await api.ask('/api/publish', { body })).json).toEqual({ duplicate: false })
    const bytes = { body: new Uint8Array([1]), headers: { 'content-type': 'application/octet-stream' } }
    expect((await api.ask('/api/publish?key=chat.ephemeral&ephemeral=true', bytes)).json).toEqual({ duplicate: false })
    expect((await api.ask('/api/history?key=chat.ephemeral')).json.messages).toEqual([])
  })
})

describe('GET /api/history', () => {
  it('pages back with before, which excludes since', async () => {
    const key = 'chat.pages'
    const messages = [0, 1, 2, 3, 4].map((payload) => ({ key, payload }))
    await api.ask('/api/publish/batch', { body: { messages } })
    const page = async (query: string) => {
      const { json } = await api.ask(`/api/history?key=${key}&limit=2${query}`)
      return json as { messages: { payload: number; position: string }[]; gap?: string }
    }
    const found: number[] = []
    let query = ''
    for (;;) {
      const { messages, gap } = await page(query)
      expect(gap).toBeUndefined()
      found.unshift(...messages.map(({ payload }) => payload))
      const [oldest] = messages
      if (messages.length < 2 || oldest === undefined) break
      query = `&before=${oldest.position}`
    }
    expect(found).toEqual([0, 1, 2, 3, 4])
    expect(codeOf(await api.ask(`/api/history?key=${key}${query}&since=e:1`))).toBe('422 E_MESSAGE_INVALID')
  })
})

describe('a client with a token', () => {
  it('may do what its grants allow, and nothing else', async () => {
    const ask = (path: string, body?: unknown) => api.ask(path, { bearer: annToken, body })
    const codes = [
      await ask('/api/publish', { key: 'chat.2', payload: 1 }),
      await ask('/api/history?key=chat.2'),
      await ask('/api/presence?key=chat.2'),
      await ask('/api/publish', { key: 'other', payload: 1 }),
      await ask('/api/publish/batch', {
        messages: [
          { key: 'chat.2', payload: 1 },
          { key: 'other', payload: 1 },
        ],
      }),
      await ask('/api/history?key=other'),
      await ask('/api/presence?key=other'),
      await ask('/api/connections?node=all'),
      await ask('/api/info'),
    ].map(codeOf)
    expect(codes).toEqual([...Array(3).fill('200 ok'), ...Array(6).fill('403 E_FORBIDDEN')])
  })

  it.each([
    ['no key', ''],
    ['a wrong key', `${API_KEY}x`],
    ['a token with another signature', 'a.b.c'],
  ])('is refused with %s', async (_, bearer) => {
    const answer = await api.ask('/api/connections', { bearer })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })
})

describe('the publish rate of a user', () => {
  let limited: ApiServer

  beforeAll(async () => {
    limited = await ApiServer.start({ jwt: { secret: SECRET }, maxPublishBytesPerSecondPerUser: 1_000 })
  })
  afterAll(async () => {
    await limited.server.stop({ drainMs: 0 })
  })

  it('refuses what comes too fast with 429 and a time to wait, and neither other users nor operators', async () => {
    const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')]
    const body = { key: 'a', payload: 'x'.repeat(20_000) }
    const publish = (bearer: string) => limited.ask('/api/publish', { bearer, body })
    expect(codeOf(await publish(ann))).toBe('200 ok')
    const refused = await publish(ann)
    expect(codeOf(refused)).toBe('429 E_RATE_LIMIT')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1)
    const batch = { messages: [{ key: 'a', payload: 1 }] }
    expect(codeOf(await limited.ask('/api/publish/batch', { bearer: ann, body: batch }))).toBe('429 E_RATE_LIMIT')
    expect(codeOf(await publish(bob))).toBe('200 ok')
    expect(codeOf(await publish(API_KEY))).toBe('200 ok')
    expect(limited.server.stats().publishRateCounts).toEqual({ connection: 0, user: 2, broker: 0 })
    expect((await limited.ask('/api/history?key=a')).json.messages).toHaveLength(3)
  })
})

describe('hooks', () => {
  let asking: ApiServer
  const seen: string[] = []

  beforeAll(async () => {
    asking = await ApiServer.start({
      hooks: {
        connect: ({ user, headers }) => {
          seen.push(`connect ${user} ${headers['x-device']}`)
          if (headers['x-device'] === 'stolen') return { refuse: { code: 'E_DEVICE_STOLEN' } }
          // A client about which the hook says nothing may do nothing.
          return headers['x-device'] === 'own' ? { grants: [{ keys: ['#'], allow: ['listen', 'publish'] }] } : undefined
        },
        listen: ({ pattern, op }) => (pattern === 'secret' ? { refuse: {} } : void seen.push(`${op} ${pattern}`)),
        publish: ({ key, json }) => (key === 'shout' ? { payload: String(json()).toUpperCase() } : undefined),
      },
    })
  })
  afterAll(async () => {
    await asking.server.stop({ drainMs: 0 })
  })
  const asClient = (path: string, body?: unknown, device = 'own') =>
    asking.ask(path, { bearer: '', body, headers: { 'x-device': device } })

  it('are asked about clients, and not about operators', async () => {
    expect(codeOf(await asClient('/api/publish', { key: 'shout', payload: 'hi' }))).toBe('200 ok')
    expect(codeOf(await asking.ask('/api/publish', { body: { key: 'shout', payload: 'hi' } }))).toBe('200 ok')
    const { json } = await asClient('/api/history?key=shout')
    expect(json.messages).toMatchObject([{ payload: 'HI' }, { payload: 'hi' }])
    expect(seen).toEqual(['connect undefined own', 'connect undefined own', 'history shout'])
  })

  it('may refuse one message of a batch while another is not allowed at all', async () => {
    const both = await ApiServer.start({
      hooks: {
        connect: () => ({ grants: [{ keys: ['a'], allow: ['publish'] }] }),
        publish: async () => ({ refuse: { code: 'E_NO_CREDIT' } }),
      },
    })
    onTestFinished(() => both.server.stop({ drainMs: 0 }))
    const messages = ['a', 'b'].map((key) => ({ key, payload: 1 }))
    const answer = await both.ask('/api/publish/batch', { bearer: '', body: { messages } })
    expect(codeOf(answer)).toBe('403 E_FORBIDDEN')
    expect(answer.json.message).toContain('message 1 of the batch')
    expect(codeOf(await both.ask('/api/publish', { bearer: '', body: messages[0] }))).toBe('403 E_NO_CREDIT')
  })

  it('see the address of the client, not that of a trusted proxy', async () => {
    const addresses: string[] = []
    const proxied = await ApiServer.start({
      trustedProxies: ['loopback'],
      hooks: { connect: ({ address }) => void addresses.push(address) },
    })
    onTestFinished(() => proxied.server.stop({ drainMs: 0 }))
    const ask = (forwarded: string) =>
      proxied.ask('/api/history?key=a', { bearer: '', headers: { 'x-forwarded-for': forwarded } })
    expect(codeOf(await ask('192.0.2.7'))).toBe('403 E_FORBIDDEN')
    expect(codeOf(await ask('nonsense'))).toBe('403 E_FORBIDDEN')
    expect(addresses).toEqual(['192.0.2.7', '127.0.0.1'])
  })

  it('refuse with their own codes', async () => {
    expect(codeOf(await asClient('/api/history?key=shout', undefined, 'stolen'))).toBe('403 E_DEVICE_STOLEN')
    expect(codeOf(await asClient('/api/history?key=secret'))).toBe('403 E_FORBIDDEN')
    expect(codeOf(await asking.ask('/api/history?key=secret'))).toBe('200 ok')
    expect(codeOf(await asClient('/api/history?key=shout', undefined, 'unknown'))).toBe('403 E_FORBIDDEN')
  })
})
