import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from 'webmq-conformance'
import { ApiServer, SECRET } from './api-server.js'
import { ProtocolClient } from './protocol-client.js'
import { SseReader } from './sse-reader.js'

// A listen passes the same checks at each door, and hears of a gap in the same cases.

const GRANTS = [{ keys: ['open.#', 'hooked.#'], allow: ['listen'] }]

let house: ApiServer
let asked: string[] = []
/** Positions of `open.short`: of a message that the log has dropped, and of one that it has. */
let dropped: string
let kept: string

beforeAll(async () => {
  house = await ApiServer.start({
    jwt: { secret: SECRET },
    history: ['open.short=100'],
    historyMaxMessages: 2,
    meta: ['open.stamped.#'],
    maxWords: 8,
    hooks: {
      listen: ({ pattern, isReplay }) => {
        asked.push(`${pattern}${isReplay ? ' replayed' : ''}`)
        return pattern.startsWith('hooked.') ? { refuse: { code: 'E_NO_CREDIT', message: 'pay first' } } : undefined
      },
    },
  })
  const publish = async (key: string) => (await house.server.publish(key, 1)).position ?? ''
  dropped = await publish('open.short')
  for (let count = 0; count < 5; count++) kept = await publish('open.short')
})

afterAll(() => house.server.stop({ drainMs: 0 }))

interface Asked {
  readonly pattern: string
  readonly since?: () => string
  readonly meta?: true
  readonly limits?: object
}

/** What a client is told: the code of a refusal, the reason of a gap, that it has everything, or that it listens. */
type Told = string

const DOORS: Readonly<Record<string, (asked: Asked, headers: Record<string, string>) => Promise<Told>>> = {
  async websocket({ pattern, since, meta }, headers) {
    const client = await ProtocolClient.open(house.webSocketUrl, { headers })
    const answer = await client.request((id) => ({
      ...{ verb: 'listen', id, pattern },
      ...(since && { since: since() }),
      ...(meta && { meta }),
    }))
    client.socket.terminate()
    if (answer.verb === 'error') return answer.code
    return answer.gap ?? (answer.recovered ? 'recovered' : 'live')
  },
  async sse({ pattern, since, meta }, headers) {
    const query = new URLSearchParams({ listen: pattern, ...(since && { since: since() }), ...(meta && { meta: '1' }) })
    const reader = new SseReader(house.port, `${query}`, headers)
    if ((await reader.client.response()).statusCode !== 200) return String((await reader.refusal()).code)
    const told = await eventually(() => {
      const [refused] = reader.named('refused')
      const [gap] = reader.named('gap')
      const [live] = reader.named('live')
      if (refused === undefined && live === undefined) throw new Error('no answer yet')
      return refused?.data.code ?? gap?.data.reason ?? (live?.data.recovered === true ? 'recovered' : 'live')
    })
    reader.client.destroy()
    return told
  },
}

const ROWS: readonly (readonly [what: string, asked: Asked, told: Told, hooks: readonly string[]])[] = [
  ['a grant', { pattern: 'open.a' }, 'live', ['open.a']],
  ['no grant', { pattern: 'closed.a' }, 'E_FORBIDDEN', []],
  ['a pattern wider than a grant', { pattern: '#' }, 'E_FORBIDDEN', []],
  ['too many words', { pattern: 'open.b.c.d.e.f.g.h.i' }, 'E_PATTERN_INVALID', []],
  ['no room', { pattern: 'open.a', limits: { maxListensPerUser: 0 } }, 'E_LISTEN_LIMIT', []],
  ['meta', { pattern: 'open.stamped.a', meta: true }, 'live', ['open.stamped.a']],
  ['meta of no key', { pattern: 'open.a', meta: true }, 'E_UNSUPPORTED', []],
  ['a hook that refuses', { pattern: 'hooked.a' }, 'E_NO_CREDIT', ['hooked.a']],
  ['a position', { pattern: 'open.short', since: () => kept }, 'recovered', ['open.short replayed']],
  ['an old position', { pattern: 'open.short', since: () => dropped }, 'history-expired', ['open.short replayed']],
  ['no log', { pattern: 'open.a', since: () => kept }, 'no-history', ['open.a replayed']],
]

let userCount = 0

describe.each(Object.entries(DOORS))('a listen by %s', (_, listen) => {
  it.each(ROWS)('with %s', async (_, request, told, hooks) => {
    asked = []
    const token = await new SignJWT({ webmq: { grants: GRANTS, limits: request.limits ?? {} } })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(`user-${++userCount}`)
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(SECRET))
    expect(await listen(request, { authorization: `Bearer ${token}` })).toBe(told)
    expect(asked).toEqual(hooks)
  })
})
